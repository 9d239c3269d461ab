package azimuth.planner;

import java.util.Arrays;

/**
 * Which loads may change against each other by one.
 *
 * <p>With a band any load may rise to its highest and fall to its lowest. With exact loads a member of load l may only
 * swap its place with one of load l - 1: the sorted loads stay the same.
 */
record Exchange(int[] low, int[] high, boolean exact) {
    /** Classes at some loads: a member may take one more where another of the same class gives one; -1 is none. */
    record Classes(int[] take, int[] give, int count) {}

    Classes classes(int[] load) {
        int[] take = new int[load.length];
        int[] give = new int[load.length];
        if (!exact) {
            for (int m = 0; m < load.length; m++) {
                take[m] = load[m] < high[m] ? 0 : -1;
                give[m] = load[m] > low[m] ? 0 : -1;
            }
            return new Classes(take, give, 1);
        }
        int[] names = new int[2 * load.length];
        for (int m = 0; m < load.length; m++) {
            names[2 * m] = load[m];
            names[2 * m + 1] = load[m] + 1;
        }
        int[] numbered = Arrays.stream(names).sorted().distinct().toArray();
        for (int m = 0; m < load.length; m++) {
            take[m] = Arrays.binarySearch(numbered, load[m] + 1);
            give[m] = Arrays.binarySearch(numbered, load[m]);
        }
        return new Classes(take, give, numbered.length);
    }

    /** How many may be exchanged at once. */
    int step(int[] load, int taker, int giver) {
        return exact ? 1 : Math.min(high[taker] - load[taker], load[giver] - low[giver]);
    }
}
