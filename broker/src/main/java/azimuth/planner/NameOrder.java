package azimuth.planner;

import java.util.Arrays;
import java.util.Comparator;

/**
 * Order of names by their UTF-8 bytes, which is the order of their code points.
 *
 * <p>Comparing names one by one is a large part of the time of a plan. So numbers are sorted: the first bytes that
 * differ, with the place of the name in the low bits. Only names with equal numbers are compared.
 */
final class NameOrder {
    private NameOrder() {}

    /**
     * Sorts names.
     *
     * @param ties order of the places of two equal names
     * @return places of the names, first to last
     */
    static int[] ascending(byte[][] names, Comparator<Integer> ties) {
        int skip = commonPrefix(names);
        long places = Long.highestOneBit(Math.max(names.length - 1, 1)) * 2 - 1;
        long[] keyed = new long[names.length];
        for (int i = 0; i < keyed.length; i++) {
            keyed[i] = firstBytes(names[i], skip) >>> 1 & ~places | i;
        }
        new SpreadSort(keyed.length).sort(keyed, keyed.length);
        int[] order = new int[keyed.length];
        for (int i = 0; i < order.length; i++) {
            order[i] = (int) (keyed[i] & places);
        }
        Comparator<Integer> exact = Comparator.<Integer, byte[]>comparing(i -> names[i], Arrays::compareUnsigned).thenComparing(ties);
        for (int start = 0; start < order.length; ) {
            int end = start + 1;
            while (end < order.length && (keyed[end] ^ keyed[start]) <= places) {
                end++;
            }
            if (end - start > 1) {
                sort(order, start, end, exact);
            }
            start = end;
        }
        return order;
    }

    private static void sort(int[] order, int start, int end, Comparator<Integer> by) {
        int[] sorted = Arrays.stream(order, start, end).boxed().sorted(by).mapToInt(Integer::intValue).toArray();
        System.arraycopy(sorted, 0, order, start, sorted.length);
    }

    private static int commonPrefix(byte[][] names) {
        int common = names.length == 0 ? 0 : names[0].length;
        for (byte[] name : names) {
            int differ = Arrays.mismatch(name, 0, Math.min(name.length, common), names[0], 0, common);
            common = differ < 0 ? common : differ;
        }
        return common;
    }

    /** Eight bytes as one number, the first is the highest; zeros after the end. */
    private static long firstBytes(byte[] name, int from) {
        long number = 0;
        for (int i = from; i < from + Long.BYTES; i++) {
            number = number << Byte.SIZE | (i < name.length ? name[i] & 0xFF : 0);
        }
        return number;
    }
}
