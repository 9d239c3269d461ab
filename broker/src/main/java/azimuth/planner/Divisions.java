package azimuth.planner;

import java.util.ArrayList;
import java.util.List;

/** Ways to divide the partitions of a topic among a few members. */
final class Divisions {
    private static final long MOST = 100; // ways of one topic; if there are more, only those close to the present one are tried
    private static final int SHIFT = 2;

    private Divisions() {}

    /** All ways to divide a count among at most so many of the members; null if there are too many. */
    static int[][] all(int count, int most, int members) {
        long ways = 0;
        for (int k = 1; k <= most && ways <= MOST; k++) {
            ways += choose(members, k) * choose(count - 1, k - 1);
        }
        if (ways > MOST) {
            return null;
        }
        List<int[]> out = new ArrayList<>();
        for (int k = 1; k <= most; k++) {
            for (int[] readers : combinations(0, members, k)) {
                for (int[] cuts : combinations(1, count, k - 1)) {
                    int[] way = new int[members];
                    for (int i = 0; i < k; i++) {
                        way[readers[i]] = (i < cuts.length ? cuts[i] : count) - (i > 0 ? cuts[i - 1] : 0);
                    }
                    out.add(way);
                }
            }
        }
        return out.toArray(new int[0][]);
    }

    /** Small changes of a division, in the order of their first member's count, then the next. */
    static int[][] near(int[] present, int most) {
        List<int[]> out = new ArrayList<>();
        addNear(present, most, 0, 0, new int[present.length], out);
        return out.toArray(new int[0][]);
    }

    private static void addNear(int[] present, int most, int at, int sum, int[] way, List<int[]> out) {
        if (at == way.length) {
            int readers = 0;
            for (int count : way) {
                readers += count > 0 ? 1 : 0;
            }
            if (sum == 0 && readers <= most) {
                out.add(way.clone());
            }
            return;
        }
        for (int change = -SHIFT; change <= SHIFT; change++) {
            if (present[at] + change >= 0) {
                way[at] = present[at] + change;
                addNear(present, most, at + 1, sum + change, way, out);
            }
        }
    }

    /** The binomial coefficient; large ones only need to be large. */
    static long choose(long from, long count) {
        if (count < 0 || count > from) {
            return 0;
        }
        long out = 1;
        for (long i = 1; i <= Math.min(count, from - count); i++) {
            out = out * (from - i + 1) / i;
            if (out > Integer.MAX_VALUE * 1024L) {
                return out;
            }
        }
        return out;
    }

    /** Combinations of so many numbers of [start, end), in lexicographic order. */
    private static List<int[]> combinations(int start, int end, int count) {
        List<int[]> out = new ArrayList<>();
        int[] chosen = new int[count];
        for (int i = 0; i < count; i++) {
            chosen[i] = start + i;
        }
        while (count == 0 || chosen[count - 1] < end) {
            out.add(chosen.clone());
            int at = count - 1;
            while (at >= 0 && chosen[at] == end - count + at) {
                at--;
            }
            if (at < 0) {
                return out;
            }
            chosen[at]++;
            for (int i = at + 1; i < count; i++) {
                chosen[i] = chosen[i - 1] + 1;
            }
        }
        return out;
    }
}
