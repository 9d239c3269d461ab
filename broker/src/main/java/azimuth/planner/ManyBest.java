package azimuth.planner;

/** Sorts any number of members by their scores, as {@link FewBest} does few. */
final class ManyBest {
    private final long[] keyed;
    private final SpreadSort sort;

    /**
     * Makes room.
     *
     * @param most members that one call sorts
     */
    ManyBest(int most) {
        keyed = new long[most];
        sort = new SpreadSort(most);
    }

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
        long places = 2L * Integer.highestOneBit(Math.max(count, 1)) - 1;
        for (int i = 0; i < count; i++) {
            keyed[i] = ~scores[members[i]] >>> 1 & ~places | i;
        }
        sort.sort(keyed, count);
        boolean certain = true;
        for (int i = 0; i < wanted; i++) {
            out[i] = members[(int) (keyed[i] & places)];
            certain &= i + 1 == count || (keyed[i] ^ keyed[i + 1]) > places;
        }
        return certain;
    }
}
