package azimuth.planner;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntConsumer;

/**
 * Chooses the readers of topics with a worker cap: owners first, then new readers by rank.
 *
 * <p>Choosing readers so that loads are within their bounds is bin packing. So {@link SmallGroups} plans small groups
 * exactly; for larger ones this class chooses a first set of readers, and {@link LocalSearch} and {@link PoolSearch}
 * improve it.
 *
 * @param readers members that may read each topic
 * @param pieces partitions of each topic on each member; topics without a cap that the same members read share the row of
 *     the first of them; null without capped topics
 * @param fairest whether loads are outside their bounds, but no plan has more even ones, and no member is off rack
 */
record Readers(BitSet[] readers, int[][] pieces, boolean fairest) {
    /** Topics whose cap is below what may read them. */
    static boolean[] capped(Group group, int[] caps) {
        boolean[] out = new boolean[caps.length];
        for (int t = 0; t < out.length; t++) {
            out[t] = caps[t] < Math.min(group.size(t), group.members.length);
        }
        return out;
    }

    /**
     * Chooses the readers of each capped topic; owners stay while loads are in the band.
     *
     * @param owner valid claims
     * @param caps most distinct members of each topic
     * @param capped topics to choose readers for
     * @param least lower bound of the claims that move
     */
    static Readers choose(
            Group group, int[] owner, int[] caps, boolean[] capped, Band band, Ranking ranking, long least) {
        BitSet[] readers = Kinds.subscribers(group);
        int[] rows = rows(readers, capped);
        SearchState state = keepOwners(group, owner, caps, capped, band, readers, rows);
        int[] order = Arrays.stream(Order.where(caps.length, t -> capped[t])).boxed()
                .sorted(Comparator.comparingInt((Integer t) -> -ceilDiv(group.size(t), caps[t]))
                        .thenComparingInt(t -> -group.size(t)))
                .mapToInt(Integer::intValue).toArray();
        for (int t : order) {
            addNewcomers(group, state, t, ranking);
        }
        placeUncapped(group, state, rows, capped);
        LocalSearch.bringIntoBand(state, least);
        for (int t = 0; t < caps.length; t++) {
            if (capped[t]) {
                readers[t].clear();
                for (int m = 0; m < state.members; m++) {
                    readers[t].set(m, state.pieces[t][m] > 0);
                }
            }
        }
        return new Readers(readers, state.pieces, !state.anyOff && state.countOutside() > 0 && state.isFairest());
    }

    private static int ceilDiv(int amount, int by) {
        return (int) (((long) amount + by - 1) / by);
    }

    /** Valid claims, by topic, then member. */
    static int[][] owned(Group group, int[] owner, int[] rows) {
        int[][] owned = new int[group.topics()][group.members.length];
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] >= 0) {
                owned[rows == null ? group.topicOf[p] : rows[group.topicOf[p]]][owner[p]]++;
            }
        }
        return owned;
    }

    /** The row of each topic; topics without a cap that the same members read share the row of the first of them. */
    private static int[] rows(BitSet[] subscribers, boolean[] capped) {
        Map<BitSet, Integer> first = new HashMap<>();
        int[] rows = new int[capped.length];
        for (int t = 0; t < rows.length; t++) {
            int topic = t;
            rows[t] = capped[t] ? t : first.computeIfAbsent(subscribers[t], same -> topic);
        }
        return rows;
    }

    private static SearchState keepOwners(
            Group group, int[] owner, int[] caps, boolean[] capped, Band band, BitSet[] subscribers, int[] rows) {
        int topics = caps.length;
        int members = group.members.length;
        int[][] owned = owned(group, owner, rows);
        int[][] pieces = new int[topics][];
        int[] limits = new int[topics];
        boolean[][] may = new boolean[topics][members];
        int[][] sets = new int[topics][group.off.length];
        for (int t = 0; t < topics; t++) {
            limits[t] = capped[t] ? caps[t] : Integer.MAX_VALUE;
            subscribers[t].stream().forEach(set(may[t]));
            pieces[t] = owned[t].clone();
            if (capped[t]) {
                // If a topic has more owners than its cap, those with the largest pieces stay readers.
                int[] order = Order.ascending(Arrays.stream(owned[t]).map(piece -> -piece).toArray());
                for (int i = caps[t]; i < members; i++) {
                    pieces[t][order[i]] = 0;
                }
                for (int p = group.first[t]; p < group.first[t + 1]; p++) {
                    sets[t][group.racksOf[p]]++;
                }
            }
        }
        return new SearchState(band, limits, may, owned, sets, group.off, pieces);
    }

    private static IntConsumer set(boolean[] row) {
        return m -> row[m] = true;
    }

    /** Divides unowned partitions among the owners and the best ranked new readers with room for a whole piece. */
    private static void addNewcomers(Group group, SearchState state, int topic, Ranking ranking) {
        int[] mine = state.pieces[topic];
        int left = group.size(topic) - Arrays.stream(mine).sum();
        if (left == 0) {
            return;
        }
        int owners = (int) Arrays.stream(mine).filter(piece -> piece > 0).count();
        int[] may = Order.where(state.members, m -> state.may[topic][m]);
        int cap = Math.min(state.caps[topic], may.length);
        int wanted = Math.max(owners, Math.min(cap, owners + left));
        int[] readers = Arrays.stream(byPreference(group, state, topic, ranking, cap)).limit(wanted).sorted().toArray();
        for (; left > 0; left--) {
            int next = readers[0];
            for (int m : readers) {
                next = isNext(state, mine, m, next) ? m : next;
            }
            state.take(topic, next, 1);
        }
    }

    /** With room, with the smallest piece, with the smallest load. */
    private static boolean isNext(SearchState state, int[] mine, int one, int two) {
        boolean full = state.load[one] >= state.band.high()[one];
        if (full != state.load[two] >= state.band.high()[two]) {
            return !full;
        }
        return mine[one] != mine[two] ? mine[one] < mine[two] : state.load[one] < state.load[two];
    }

    /** Owners, then members with room for a whole piece, then those with the fewest partitions off rack, by rank. */
    private static int[] byPreference(Group group, SearchState state, int topic, Ranking ranking, int cap) {
        int members = state.members;
        int piece = ceilDiv(group.size(topic), cap);
        long[] scores = ranking.scores(topic, members);
        int[] away = new int[members];
        int[] behind = new int[members];
        boolean[] full = new boolean[members];
        for (int m = 0; m < members; m++) {
            for (int set = 0; set < state.off.length; set++) {
                away[m] += state.off[set][m] ? state.sets[topic][set] : 0;
            }
            full[m] = state.load[m] + piece > state.band.high()[m];
            behind[m] = full[m] ? state.load[m] : 0;
        }
        Integer[] order = new Integer[members];
        Arrays.setAll(order, m -> m);
        Arrays.sort(order, (one, two) -> {
            int by = Boolean.compare(state.may[topic][two], state.may[topic][one]);
            by = by != 0 ? by : Boolean.compare(state.pieces[topic][one] == 0, state.pieces[topic][two] == 0);
            by = by != 0 ? by : Boolean.compare(full[one], full[two]);
            by = by != 0 ? by : Integer.compare(behind[one], behind[two]);
            by = by != 0 ? by : Integer.compare(away[one], away[two]);
            return by != 0 ? by : Long.compareUnsigned(scores[two], scores[one]);
        });
        return Arrays.stream(order).mapToInt(Integer::intValue).toArray();
    }

    /** Gives unowned partitions of topics without a cap to the least loaded members. */
    private static void placeUncapped(Group group, SearchState state, int[] rows, boolean[] capped) {
        int[] counts = new int[rows.length];
        for (int t = 0; t < rows.length; t++) {
            counts[rows[t]] += group.size(t);
        }
        for (int t = 0; t < rows.length; t++) {
            int row = t;
            int[] members = Order.where(state.members, m -> state.may[row][m]);
            int left = counts[t] - Arrays.stream(state.pieces[t]).sum();
            if (capped[t] || rows[t] != t || left == 0 || members.length == 0) {
                continue;
            }
            int[] more = FairestLoads.pour(left, Arrays.stream(members).map(m -> state.load[m]).toArray());
            for (int i = 0; i < members.length; i++) {
                state.take(t, members[i], more[i]);
            }
        }
    }
}
