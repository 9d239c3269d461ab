package azimuth.planner;

import java.util.ArrayList;
import java.util.List;

/**
 * Sorts a few members by their scores without a branch.
 *
 * <p>Hashed scores come in random order, so a processor mispredicts about one branch of each insertion, and that takes
 * longer than the sort itself. The comparisons of a sorting network do not depend on the numbers.
 *
 * <p>Source: Batcher 1968, odd-even merge sort.
 */
final class FewBest {
    /** Most members that one call sorts. */
    static final int MOST = 32;

    private static final long PLACE = MOST - 1;
    private static final byte[][] NETWORKS = new byte[MOST + 1][];

    static {
        for (int count = 0; count <= MOST; count++) {
            NETWORKS[count] = network(count);
        }
    }

    private final long[] keyed = new long[MOST];

    /**
     * Sorts members, and writes the first of them.
     *
     * @param members to choose from, the first of this array
     * @param count how many there are
     * @param scores by member; the highest, unsigned, is the first
     * @param out takes the first
     * @param wanted how many to write, at most as many as there are
     * @return whether the order is certain: it is not if scores differ only in their lowest bits, or not at all
     */
    boolean choose(int[] members, int count, long[] scores, int[] out, int wanted) {
        for (int i = 0; i < count; i++) {
            keyed[i] = scores[members[i]] >>> 1 & ~PLACE | i; // without a sign, so that differences do not overflow
        }
        sort(NETWORKS[count]);
        long alike = 0;
        for (int i = 0; i < wanted; i++) {
            out[i] = members[(int) (keyed[i] & PLACE)];
            alike |= i + 1 < count ? (keyed[i] ^ keyed[i + 1]) - PLACE - 1 : 0; // negative if they differ in the place only
        }
        return alike >= 0;
    }

    private void sort(byte[] network) {
        for (int i = 0; i < network.length; i += 2) {
            long one = keyed[network[i]];
            long two = keyed[network[i + 1]];
            long less = one - two & one - two >> 63; // 0 if they are in order
            keyed[network[i]] = one - less;
            keyed[network[i + 1]] = two + less;
        }
    }

    /** Pairs of places to compare one after the other: the higher number goes to the first. */
    private static byte[] network(int count) {
        List<Byte> pairs = new ArrayList<>();
        for (int merged = 1; merged < count; merged *= 2) {
            for (int step = merged; step > 0; step /= 2) {
                for (int start = step % merged; start + step < count; start += 2 * step) {
                    for (int i = start; i < Math.min(start + step, count - step); i++) {
                        if (i / (2 * merged) == (i + step) / (2 * merged)) {
                            pairs.add((byte) i);
                            pairs.add((byte) (i + step));
                        }
                    }
                }
            }
        }
        byte[] out = new byte[pairs.size()];
        for (int i = 0; i < out.length; i++) {
            out[i] = pairs.get(i);
        }
        return out;
    }
}
