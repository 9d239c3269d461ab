package azimuth.planner;

import java.util.Arrays;
import java.util.stream.LongStream;

/** Gives what no member holds: topic by topic, to the best ranked members that have room. */
final class Fill {
    /** Owner of each partition so far; {@link Group#NOBODY} where none. */
    final int[] owner;

    private final Group group;
    private final Ranking ranking;
    private final double epsilon;
    private final boolean severalNodes;
    private final int count;

    private final long[] traits;
    private final long[] scores;
    private final int[] have;
    private final int[] chosen;
    private final FewBest fewBest = new FewBest();
    private final ManyBest manyBest;
    private final boolean[] over;
    private final int[] place;
    private final OpenMembers open;

    private int[] low;
    private int[] high;
    private int[] load;
    private double[] share;
    private boolean even;
    private long placed;
    private long need;
    private int left;
    /** Members looked at for each that is needed: grows where few of them have room. */
    private int spread = 1;

    Fill(Group group, Ranking ranking, double epsilon, int[] owner) {
        this.group = group;
        this.ranking = ranking;
        this.epsilon = epsilon;
        this.owner = owner;
        count = group.members.length;
        severalNodes = 1 < group.nodes && group.nodes < count;
        traits = LongStream.range(0, count).map(m -> ranking.trait((int) m)).toArray();
        scores = new long[count];
        have = new int[count];
        chosen = new int[count];
        over = new boolean[count];
        place = new int[count];
        open = new OpenMembers(traits);
        manyBest = new ManyBest(count);
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
        open.forget();
        for (int m = 0; m < count; m++) {
            placed += load[m];
            need += Math.max(low[m] - load[m], 0);
        }
        for (long run : runsByLength(free)) {
            int start = (int) run;
            int topic = group.topicOf[free[start]];
            int length = Integer.MAX_VALUE - (int) (run >>> 32);
            if (length == 1 && group.size(topic) == 1) {
                owner[free[start]] = placeOne(topic);
            } else {
                countHeld(topic);
                place(topic, free, start, length);
                forgetHeld(topic);
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
        for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
            if (owner[p] >= 0) {
                have[owner[p]]++;
            }
        }
    }

    private void forgetHeld(int topic) {
        for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
            if (owner[p] >= 0) {
                have[owner[p]] = 0;
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

    private int placeOne(int topic) {
        int best = chooseFirst(topic, 1) > 0 ? chosen[0] : bestAboveItsBound(topic);
        give(best);
        return best;
    }

    /** The best of the members with room; no member is under the running bound. */
    private int bestAboveItsBound(int topic) {
        int[] top = left <= need ? low : high;
        int best = -1;
        scoreAll(topic);
        for (int m = 0; m < count; m++) {
            if (load[m] < top[m] && (best < 0 || isAhead(m, best))) {
                best = m;
            }
        }
        return best;
    }

    private void scoreAll(int topic) {
        for (int m = 0; m < count; m++) {
            scores[m] = ranking.score(topic, traits[m]);
        }
    }

    private void place(int topic, int[] free, int start, int length) {
        boolean ranked = false;
        int done = 0;
        while (done < length) {
            int more = length - done;
            int found = severalNodes ? -1 : chooseFirst(topic, more);
            if (found < more && !ranked) {
                scoreAll(topic);
                ranked = true;
            }
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
     * <p>Most of them are not looked at, because a few have scores above what the worst of those chosen can have. If too
     * few of them have room, more are looked at here, and in the next topic.
     */
    private int chooseFirst(int topic, int most) {
        open.refresh(load, left <= need ? low : high, high, even ? evenBound(most) : Integer.MAX_VALUE);
        int found = 0;
        for (long look = aim(most); ; look *= 2) {
            int wanted = (int) Math.min(open.count, look);
            int near = open.reaching(ranking, topic, wanted, ranking.exceededBy(wanted, open.count), place);
            found = withoutHolders(near, most);
            if (found >= most || near == open.count) {
                break;
            }
            spread = Math.min(spread + 1, count);
        }
        if (found > 2 * most && spread > 1) {
            spread--;
        }
        for (int i = 0; i < found; i++) {
            scores[place[i]] = ranking.score(topic, traits[place[i]]);
        }
        return best(found, Math.min(found, most));
    }

    /** Sorts candidates that are all below their bounds by (rank, number). */
    private int best(int found, int wanted) {
        if (found <= FewBest.MOST && fewBest.choose(place, found, scores, chosen, wanted)
                || manyBest.choose(place, found, scores, chosen, wanted)) {
            return wanted;
        }
        for (int i = 0; i < found; i++) {
            over[place[i]] = false;
        }
        return chooseBest(found, wanted, null);
    }

    /** Members to look at so that enough are found nearly always: chance varies by the square root. */
    private long aim(int most) {
        long wanted = (long) most * spread;
        return wanted + (long) Math.ceil(2 * Math.sqrt(wanted));
    }

    /** Keeps those of the members found that hold nothing of the topic and, where bounds differ, are below theirs. */
    private int withoutHolders(int near, int more) {
        int found = 0;
        for (int i = 0; i < near; i++) {
            int m = place[i];
            if (have[m] == 0 && (even || load[m] < bound(m, 0, more))) {
                place[found++] = m;
            }
        }
        return found;
    }

    private boolean isAhead(int one, int two) {
        int byRank = Long.compareUnsigned(scores[one], scores[two]);
        return byRank == 0 ? one < two : byRank > 0;
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
        return isAhead(one, two);
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
        open.gave(member, load[member]);
        left--;
        placed++;
    }
}
