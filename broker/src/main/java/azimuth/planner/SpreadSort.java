package azimuth.planner;

import java.util.Arrays;

/**
 * Sorts numbers that are spread over a range, such as hashes.
 *
 * <p>Such a number says about where it belongs, so nearly all of the sort is to put each there. A sort by comparisons
 * takes several times as long, because chance decides each branch.
 *
 * <p>Source: Dobosiewicz 1978, sorting by distributive partitioning.
 */
final class SpreadSort {
    /** Comparisons for each number beyond which a common sort is faster. */
    private static final int CROWD = 16;

    private final int[] starts;
    private final long[] sorted;

    /**
     * Makes room.
     *
     * @param most numbers that one call sorts
     */
    SpreadSort(int most) {
        starts = new int[slots(most) + 1];
        sorted = new long[most];
    }

    /** A power of two above the count, at most twice as many. */
    private static int slots(int count) {
        return 2 * Integer.highestOneBit(Math.max(count, 1));
    }

    /**
     * Sorts the first numbers of an array, ascending.
     *
     * @param numbers none of them negative
     */
    void sort(long[] numbers, int count) {
        long low = Long.MAX_VALUE;
        long high = 0;
        for (int i = 0; i < count; i++) {
            low = Math.min(low, numbers[i]);
            high = Math.max(high, numbers[i]);
        }
        int slots = slots(count);
        int width = Long.SIZE - Long.numberOfLeadingZeros(Math.max(high - low, 0));
        int shift = Math.max(0, width - Integer.numberOfTrailingZeros(slots));
        if (!findStarts(numbers, count, low, shift, slots)) {
            Arrays.sort(numbers, 0, count);
            return;
        }
        for (int i = 0; i < count; i++) {
            sorted[starts[(int) (numbers[i] - low >>> shift)]++] = numbers[i];
        }
        sortNeighbours(count);
        System.arraycopy(sorted, 0, numbers, 0, count);
    }

    /** Counts the numbers of each slot, then sums up; false if many share few slots. */
    private boolean findStarts(long[] numbers, int count, long low, int shift, int slots) {
        Arrays.fill(starts, 0, slots + 1, 0);
        for (int i = 0; i < count; i++) {
            starts[(int) (numbers[i] - low >>> shift) + 1]++;
        }
        long comparisons = 0;
        for (int slot = 1; slot <= slots; slot++) {
            comparisons += (long) starts[slot] * starts[slot];
            starts[slot] += starts[slot - 1];
        }
        return comparisons <= (long) CROWD * count;
    }

    /** Insertion sort: only numbers of one slot can be in the wrong order. */
    private void sortNeighbours(int count) {
        for (int i = 1; i < count; i++) {
            long number = sorted[i];
            int at = i;
            for (; at > 0 && number < sorted[at - 1]; at--) {
                sorted[at] = sorted[at - 1];
            }
            sorted[at] = number;
        }
    }
}
