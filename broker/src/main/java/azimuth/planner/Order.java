package azimuth.planner;

import java.util.Arrays;
import java.util.function.IntPredicate;

/** Indices of arrays, in order. */
final class Order {
    private Order() {}

    /** Indices from the lowest value to the highest; equal values in the order of their indices. */
    static int[] ascending(int[] values) {
        long[] keyed = new long[values.length];
        for (int i = 0; i < keyed.length; i++) {
            keyed[i] = (long) values[i] << 32 | i;
        }
        Arrays.sort(keyed);
        int[] order = new int[keyed.length];
        for (int i = 0; i < order.length; i++) {
            order[i] = (int) keyed[i];
        }
        return order;
    }

    /** Indices for which the test holds, ascending. */
    static int[] where(int count, IntPredicate test) {
        int[] found = new int[count];
        int size = 0;
        for (int i = 0; i < count; i++) {
            if (test.test(i)) {
                found[size++] = i;
            }
        }
        return Arrays.copyOf(found, size);
    }
}
