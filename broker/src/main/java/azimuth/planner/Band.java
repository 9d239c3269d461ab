package azimuth.planner;

import java.util.Arrays;

/** The fewest and the most partitions of each member. */
public record Band(int[] low, int[] high) {
    /**
     * Bounds the loads where every member may read everything.
     *
     * <p>Every load lies within (1 - epsilon) and (1 + epsilon) of the fair share, in whole partitions. Where that
     * leaves no plan, the band is widened by what an exactly balanced plan needs, never by more.
     */
    public static Band fair(int partitions, int members, double epsilon) {
        double share = (double) partitions / members;
        // Rounded first: 1.1 * 10 is 11.000000000000002, and 0.9 * 10 must not become 9.000000000000002.
        int high = (int) Math.floor(round(Math.min((1 + epsilon) * share, partitions)));
        int low = (int) Math.ceil(round(Math.max(0.0, (1 - epsilon) * share)));
        int floor = partitions / members;
        int ceiling = floor + (partitions % members == 0 ? 0 : 1);
        boolean fits = low <= high && (long) low * members <= partitions && partitions <= (long) high * members;
        if (epsilon == 0) {
            return even(members, floor, ceiling);
        }
        return fits ? even(members, low, high) : even(members, Math.min(low, floor), Math.max(high, ceiling));
    }

    /** Cuts binary noise: to 9 decimals, as Python's planner does. */
    static double round(double value) {
        return Math.rint(value * 1e9) / 1e9;
    }

    /**
     * Decides how many of its claims each member keeps; the sum is the largest that the band allows.
     *
     * <p>A member over its bound gives the surplus; where the members below their lower bound need more than is free,
     * the highest loads above the lower bound give it.
     */
    int[] kept(int[] owned, int partitions) {
        int[] kept = new int[owned.length];
        long needed = 0;
        long sum = 0;
        for (int m = 0; m < kept.length; m++) {
            kept[m] = Math.min(owned[m], high[m]);
            needed += Math.max(low[m] - kept[m], 0);
            sum += kept[m];
        }
        lowerTheHighest(kept, needed - (partitions - sum));
        return kept;
    }

    /** Takes this many units one by one from the highest load that is above its lower bound, the first of equals. */
    private void lowerTheHighest(int[] kept, long units) {
        if (units <= 0) {
            return;
        }
        int level = 0;
        int above = Arrays.stream(kept).max().orElse(0);
        while (level < above) { // the lowest level whose cut takes no more than is asked for
            int middle = (level + above) >>> 1;
            if (unitsAbove(middle, kept) <= units) {
                above = middle;
            } else {
                level = middle + 1;
            }
        }
        long rest = units - unitsAbove(level, kept);
        for (int m = 0; m < kept.length; m++) {
            kept[m] = Math.min(kept[m], Math.max(level, low[m]));
            if (rest > 0 && kept[m] == level && level > low[m]) {
                kept[m]--;
                rest--;
            }
        }
    }

    private long unitsAbove(int level, int[] kept) {
        long units = 0;
        for (int m = 0; m < kept.length; m++) {
            units += Math.max(0, kept[m] - Math.max(level, low[m]));
        }
        return units;
    }

    private static Band even(int members, int low, int high) {
        int[] lows = new int[members];
        int[] highs = new int[members];
        Arrays.fill(lows, low);
        Arrays.fill(highs, high);
        return new Band(lows, highs);
    }
}
