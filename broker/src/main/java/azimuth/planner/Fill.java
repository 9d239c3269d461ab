package azimuth.planner;

import java.util.Arrays;

/** Gives what no member holds: topic by topic, to the best ranked members that have room. */
final class Fill {
    /** Preference of every member for a topic: the highest number, unsigned, is the first choice. */
    interface Ranking {
        void rank(int topic, long[] scores);

        /** A score that about so many of the members exceed; only the speed of a plan depends on it. */
        default long exceededBy(int wanted, int members) {
            return wanted >= members ? 0 : -1 - Long.divideUnsigned(-1, members) * wanted;
        }
    }

    /** Owner of each partition so far; {@link Group#NOBODY} where none. */
    final int[] owner;

    private static final int FEW = 32; // chosen by insertion; more by a heap

    private final Group group;
    private final Ranking ranking;
    private final double epsilon;
    private final boolean severalNodes;
    private final int count;

    private final long[] scores;
    private final int[] have;
    private final int[] chosen;
    private final boolean[] over;
    private final int[] place;

    private int[] low;
    private int[] high;
    private int[] load;
    private double[] share;
    private boolean even;
    private long placed;
    private long need;
    private int left;
    /** Members looked at for each that is needed: grows where few of them have room. */
    private int spread = 3;

    Fill(Group group, Ranking ranking, double epsilon, int[] owner) {
        this.group = group;
        this.ranking = ranking;
        this.epsilon = epsilon;
        this.owner = owner;
        count = group.members.length;
        severalNodes = 1 < group.nodes && group.nodes < count;
        scores = new long[count];
        have = new int[count];
        chosen = new int[count];
        over = new boolean[count];
        place = new int[count];
    }

    /**
     * Places the free partitions; topics of many free ones choose first.
     *
     * @param free partitions to place, ascending
     * @param band bounds of the loads, whose sum allows to place them all
     * @param load where the members are between those bounds; changed
     * @param share fair share of each member, in all 1; null where all are equal
     */
    void run(int[] free, Band band, int[] load, double[] share) {
        this.low = band.low();
        this.high = band.high();
        this.load = load;
        this.share = share;
        even = share == null || Arrays.stream(share).allMatch(s -> s == share[0]);
        placed = 0;
        need = 0;
        left = free.length;
        for (int m = 0; m < count; m++) {
            placed += load[m];
            need += Math.max(low[m] - load[m], 0);
        }
        for (long run : runsByLength(free)) {
            int start = (int) run;
            int topic = group.topicOf[free[start]];
            int length = Integer.MAX_VALUE - (int) (run >>> 32);
            ranking.rank(topic, scores);
            if (length == 1 && group.size(topic) == 1) {
                owner[free[start]] = placeOne();
            } else {
                countHeld(topic);
                place(free, start, length);
            }
        }
    }

    /** Runs of one topic among the free, longest first, as (longest - length) and start in one number. */
    private long[] runsByLength(int[] free) {
        long[] runs = new long[Math.min(free.length, group.topics())];
        int found = 0;
        for (int at = 0; at < free.length; ) {
            int start = at;
            int topic = group.topicOf[free[start]];
            while (at < free.length && group.topicOf[free[at]] == topic) {
                at++;
            }
            runs[found++] = (long) (Integer.MAX_VALUE - (at - start)) << 32 | start;
        }
        Arrays.sort(runs, 0, found);
        return Arrays.copyOf(runs, found);
    }

    private void countHeld(int topic) {
        Arrays.fill(have, 0);
        for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
            if (owner[p] >= 0) {
                have[owner[p]]++;
            }
        }
    }

    // The bound grows with what is placed: with the final bound alone the last topics find few members with room.
    private int evenBound(int more) {
        double limit = Math.ceil((1 + epsilon) * (placed + more) / count - 1e-9);
        return (int) Math.min(limit, Integer.MAX_VALUE);
    }

    private int bound(int member, int evenBound, int more) {
        if (even) {
            return Math.min(high[member], evenBound);
        }
        double limit = Math.ceil(Band.round((1 + epsilon) * (placed + more) * share[member]));
        return (int) Math.min(high[member], limit);
    }

    private int placeOne() {
        boolean needy = left <= need;
        int evenBound = even ? evenBound(1) : 0;
        int best = -1;
        for (int m = 0; m < count; m++) {
            int limit = bound(m, evenBound, 1);
            if (load[m] < (needy ? Math.min(limit, low[m]) : limit) && isBetter(m, best)) {
                best = m;
            }
        }
        if (best < 0) { // no member is under the running bound
            for (int m = 0; m < count; m++) {
                if (load[m] < (needy ? low[m] : high[m]) && isBetter(m, best)) {
                    best = m;
                }
            }
        }
        give(best);
        return best;
    }

    private boolean isBetter(int member, int best) {
        return best < 0 || Long.compareUnsigned(scores[member], scores[best]) > 0;
    }

    private void place(int[] free, int start, int length) {
        int done = 0;
        while (done < length) {
            int more = length - done;
            int found = severalNodes ? -1 : chooseFirst(more);
            int taken = spareTheNeeded(found < more ? choose(more) : found);
            for (int i = 0; i < taken; i++) {
                int member = chosen[i];
                give(member);
                have[member]++;
                owner[free[start + done++]] = member;
            }
        }
    }

    /**
     * Chooses from the members below the running bound that hold nothing of the topic: nearly always enough.
     *
     * <p>Most members are not looked at, because a few have scores above what the worst of those chosen can have. If too
     * few of them have room, more are looked at here, and in the next topic.
     */
    private int chooseFirst(int most) {
        int[] top = left <= need ? low : high;
        int evenBound = even ? evenBound(most) : 0;
        int found = 0;
        for (int wanted = (int) Math.min(count, (long) most * spread); ; wanted = (int) Math.min(count, wanted * 4L)) {
            int near = above(ranking.exceededBy(wanted, count));
            found = 0;
            for (int i = 0; i < near; i++) {
                if (isOpen(place[i], top, evenBound, most)) {
                    place[found++] = place[i];
                }
            }
            if (found >= most || near == count) {
                break;
            }
            spread = Math.min(spread + 1, count);
        }
        if (found > 4L * most && spread > 1) {
            spread--;
        }
        int wanted = Math.min(found, most);
        return wanted <= FEW ? insertBest(found, wanted) : chooseBest(found, wanted, null);
    }

    /** Writes the members whose score exceeds this one; all of them if it is 0. */
    private int above(long least) {
        int found = 0;
        if (least == 0) {
            for (; found < count; found++) {
                place[found] = found;
            }
            return found;
        }
        long border = signed(least);
        for (int m = 0; m < count; m++) {
            if (signed(scores[m]) > border) {
                place[found++] = m;
            }
        }
        return found;
    }

    /** Selects the best by (rank, number) by insertion. */
    private int insertBest(int candidates, int wanted) {
        int size = 0;
        for (int i = 0; i < candidates; i++) {
            int m = place[i];
            long score = signed(scores[m]);
            int at = size;
            if (size < wanted) {
                size++;
            } else if (score <= signed(scores[chosen[--at]])) {
                continue;
            }
            for (; at > 0 && signed(scores[chosen[at - 1]]) < score; at--) {
                chosen[at] = chosen[at - 1];
            }
            chosen[at] = m;
        }
        return size;
    }

    private boolean isOpen(int member, int[] top, int evenBound, int more) {
        over[member] = false;
        return have[member] == 0 && load[member] < top[member] && load[member] < bound(member, evenBound, more);
    }

    /** Unsigned numbers compare as signed ones if the first bit of each is flipped. */
    private static long signed(long score) {
        return score ^ Long.MIN_VALUE;
    }

    /** Chooses up to `most` of the members with room that hold the fewest of the topic, best first. */
    private int choose(int most) {
        boolean needy = left <= need;
        int level = Integer.MAX_VALUE;
        int candidates = 0;
        for (int m = 0; m < count; m++) {
            if (load[m] < (needy ? Math.min(low[m], high[m]) : high[m])) {
                if (have[m] < level) {
                    level = have[m];
                    candidates = 0;
                }
                if (have[m] == level) {
                    place[candidates++] = m;
                }
            }
        }
        int evenBound = even ? evenBound(most) : 0;
        for (int i = 0; i < candidates; i++) {
            int m = place[i];
            over[m] = load[m] >= bound(m, evenBound, most);
        }
        return severalNodes ? chooseByNode(candidates, most) : chooseBest(candidates, most, null);
    }

    /** Orders by nodes with the fewest partitions of the topic first, then as {@link #chooseBest}. */
    private int chooseByNode(int candidates, int most) {
        int[] onNode = new int[group.nodes];
        for (int m = 0; m < count; m++) {
            onNode[group.nodeOf[m]] += have[m];
        }
        int[] inOrder = Arrays.copyOf(place, candidates);
        chooseBest(candidates, candidates, null);
        int[] nth = new int[count];
        for (int i = 0; i < candidates; i++) {
            nth[chosen[i]] = onNode[group.nodeOf[chosen[i]]]++;
        }
        System.arraycopy(inOrder, 0, place, 0, candidates);
        return chooseBest(candidates, most, nth);
    }

    /** Selects the best by (nth, over its bound, rank, number) with a heap whose top is the worst so far. */
    private int chooseBest(int candidates, int most, int[] nth) {
        int size = 0;
        int wanted = Math.min(most, candidates);
        for (int i = 0; i < candidates; i++) {
            int m = place[i];
            if (size < wanted) {
                siftUp(size++, m, nth);
            } else if (isBefore(m, chosen[0], nth)) {
                siftDown(m, size, nth);
            }
        }
        sortChosen(size, nth);
        return size;
    }

    /** Sorts the heap, best first. */
    private void sortChosen(int size, int[] nth) {
        for (int end = size - 1; end > 0; end--) {
            int worst = chosen[0];
            siftDown(chosen[end], end, nth);
            chosen[end] = worst;
        }
    }

    private void siftUp(int from, int member, int[] nth) {
        int at = from;
        while (at > 0 && isBefore(chosen[(at - 1) / 2], member, nth)) {
            chosen[at] = chosen[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        chosen[at] = member;
    }

    private void siftDown(int member, int size, int[] nth) {
        int at = 0;
        while (2 * at + 1 < size) {
            int below = 2 * at + 1;
            if (below + 1 < size && isBefore(chosen[below], chosen[below + 1], nth)) {
                below++;
            }
            if (!isBefore(member, chosen[below], nth)) {
                break;
            }
            chosen[at] = chosen[below];
            at = below;
        }
        chosen[at] = member;
    }

    private boolean isBefore(int one, int two, int[] nth) {
        if (nth != null && nth[one] != nth[two]) {
            return nth[one] < nth[two];
        }
        if (over[one] != over[two]) {
            return over[two];
        }
        int byRank = Long.compareUnsigned(scores[one], scores[two]);
        return byRank == 0 ? one < two : byRank > 0;
    }

    /** Leaves as many partitions as the members below their lower bound still need. */
    private int spareTheNeeded(int candidates) {
        long spare = left - need;
        int kept = 0;
        for (int i = 0; i < candidates; i++) {
            int member = chosen[i];
            if (load[member] < low[member] || spare-- > 0) {
                chosen[kept++] = member;
            }
        }
        return kept;
    }

    private void give(int member) {
        if (load[member] < low[member]) {
            need--;
        }
        load[member]++;
        left--;
        placed++;
    }
}
