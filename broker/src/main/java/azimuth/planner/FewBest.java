package azimuth.planner;

/**
 * Sorts a few members by their scores without a branch.
 *
 * <p>Hashed scores come in random order, so a processor mispredicts about one branch of each insertion, and that takes
 * longer than the sort itself. Here the place of each is the number of those before it: more comparisons, but all of
 * them without a branch, and none waits for another.
 */
final class FewBest {
    /** Most members that one call sorts. */
    static final int MOST = 32;

    /** Lowest bits of a score that need not count, here and in {@link ManyBest}: the place of the member takes them. */
    static final int UNUSED_BITS = 33;

    private static final long PLACE = MOST - 1;

    /** Keys that one pass over all of them ranks. */
    private static final int AT_ONCE = 4;

    private final long[] keyed = new long[MOST + AT_ONCE];
    private final long[] sorted = new long[MOST + 1];

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
        for (int i = count; i < count + AT_ONCE; i++) {
            keyed[i] = 0; // below all others, so its place is after the last of them
        }
        for (int i = 0; i < count; i += AT_ONCE) {
            place(i, count);
        }
        long alike = 0;
        for (int i = 0; i < wanted; i++) {
            out[i] = members[(int) (sorted[i] & PLACE)];
            alike |= i + 1 < count ? (sorted[i] ^ sorted[i + 1]) - PLACE - 1 : 0; // negative if they differ in the place only
        }
        return alike >= 0;
    }

    /** Puts four keys where they belong: each after those that are higher. */
    private void place(int at, int count) {
        long one = keyed[at];
        long two = keyed[at + 1];
        long three = keyed[at + 2];
        long four = keyed[at + 3];
        long beforeOne = 0;
        long beforeTwo = 0;
        long beforeThree = 0;
        long beforeFour = 0;
        for (int i = 0; i < count; i++) {
            long key = keyed[i];
            beforeOne += one - key >>> 63;
            beforeTwo += two - key >>> 63;
            beforeThree += three - key >>> 63;
            beforeFour += four - key >>> 63;
        }
        sorted[(int) beforeOne] = one;
        sorted[(int) beforeTwo] = two;
        sorted[(int) beforeThree] = three;
        sorted[(int) beforeFour] = four;
    }
}
