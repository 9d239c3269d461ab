package azimuth.planner;

import java.util.Arrays;

/**
 * The fairest loads that worker caps allow: if a plan has them, no search finds more even ones.
 *
 * <p>A topic of n partitions is read by at most c members, so any set of topics loads the sum of their c members with all
 * of their partitions. The topics with the most partitions for each reader are divided evenly among their own readers,
 * until the topics that are left give the other members at least as much as the next topic would. No plan has a smaller
 * load vector, compared from the highest load down. Python's {@code fairest_capped_loads} has the reason.
 */
final class FairestCappedLoads {
    private FairestCappedLoads() {}

    /**
     * Says whether loads are proven to be the fairest.
     *
     * @param sizes partitions of each topic
     * @param readers most members that may read each of them, at least 1 for a topic with partitions
     */
    static boolean are(int[] load, int[] sizes, int[] readers) {
        int[] sorted = load.clone();
        Arrays.sort(sorted);
        return Arrays.equals(sorted, find(sizes, readers, load.length));
    }

    /** The loads, from the lowest up. */
    private static int[] find(int[] sizes, int[] readers, int members) {
        int[] topics = Order.where(sizes.length, t -> sizes[t] > 0);
        Integer[] steepest = Arrays.stream(topics).boxed().toArray(Integer[]::new);
        Arrays.sort(steepest, (one, two) ->
                Double.compare((double) sizes[two] / readers[two], (double) sizes[one] / readers[one]));
        long left = Arrays.stream(sizes).asLongStream().sum();
        int[] loads = new int[members];
        int done = 0;
        for (int t : steepest) {
            int others = members - done;
            if (readers[t] >= others || (long) sizes[t] * others <= left * readers[t]) {
                break;
            }
            fill(loads, done, done + readers[t], sizes[t]);
            done += readers[t];
            left -= sizes[t];
        }
        fill(loads, done, members, left);
        Arrays.sort(loads);
        return loads;
    }

    private static void fill(int[] loads, int from, int to, long partitions) {
        int members = to - from;
        for (int i = 0; i < members; i++) {
            loads[from + i] = (int) (partitions / members) + (i < partitions % members ? 1 : 0);
        }
    }
}
