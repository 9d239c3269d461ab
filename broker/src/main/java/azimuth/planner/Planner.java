package azimuth.planner;

import java.util.Arrays;
import java.util.BitSet;
import java.util.stream.IntStream;

/**
 * Decides which member reads which partition: Python's {@code plan()} for members of equal weight.
 *
 * <p>Order of goals: every partition to exactly one subscriber; at most so many members a topic; loads within epsilon
 * of the fair share; few partitions off their reader's rack; few moved; each topic spread over nodes and members. A
 * pure function: no clock, no randomness, and the order of the input changes nothing.
 */
public final class Planner {
    /** Cap of a topic that all members may read. */
    public static final int NO_CAP = Integer.MAX_VALUE;

    /** Members x kinds up to which different subscriptions, racks and caps are planned by counts: about 50 MB of the broker. */
    static final long CELLS = 1_000_000;
    private static final int IMPROVEMENTS = 2;

    private final Group group;
    private final int[] caps;
    private final double epsilon;
    private final Ranking ranking;
    private final int members;

    /**
     * Takes a group.
     *
     * @param caps most distinct members of each topic
     * @param epsilon allowed distance of a load from the fair share
     * @param seed of the shuffle
     */
    public Planner(Group group, Strategy strategy, int[] caps, double epsilon, int seed) {
        this.group = group;
        this.caps = caps;
        this.epsilon = epsilon;
        ranking = strategy.ranking(group, seed);
        members = group.members.length;
    }

    /** Owner of each partition. */
    public int[] plan() {
        if (members == 0 || group.partitions() == 0) {
            int[] none = new int[group.partitions()];
            Arrays.fill(none, Group.NOBODY);
            return none;
        }
        boolean[] capped = Readers.capped(group, caps);
        boolean some = false;
        for (boolean one : capped) {
            some |= one;
        }
        if (some) {
            return cappedPlan(capped);
        }
        if (group.equal && !group.anyOff()) {
            return equalPlan();
        }
        return plannedFor(group.owner, new Readers(Kinds.subscribers(group), null, false), capped, fairBand()).owner;
    }

    private Band fairBand() {
        return Band.fair(group.partitions(), members, epsilon);
    }

    private int[] cappedPlan(boolean[] capped) {
        if (SmallGroups.isSmall(group)) {
            return SmallGroups.plan(group, caps, epsilon, ranking);
        }
        Band band = fairBand();
        long least = group.equal ? FewestMoves.find(group, Readers.owned(group, group.owner, null), caps, band) : 0;
        int[] before = group.owner;
        Planned plan = cappedPlan(before, capped, band, least);
        for (int i = 0; i < IMPROVEMENTS && !isSettled(plan, before, band); i++) {
            // Choosing readers is a heuristic: it runs again on its own plan, because otherwise the next rebalance,
            // which starts from that plan, would move partitions. It has nothing to improve where loads are the fairest.
            before = plan.owner;
            plan = cappedPlan(before, capped, band, least);
        }
        return plan.owner;
    }

    /** Owner of each partition, and whether no plan has more even loads. */
    private record Planned(int[] owner, boolean fairest) {}

    private boolean isSettled(Planned plan, int[] before, Band band) {
        return plan.fairest || isWithin(plan.owner, band) || Arrays.equals(before, plan.owner);
    }

    private Planned cappedPlan(int[] owner, boolean[] capped, Band band, long least) {
        return plannedFor(owner, Readers.choose(group, owner, caps, capped, band, ranking, least), capped, band);
    }

    private boolean isWithin(int[] owner, Band band) {
        return isWithin(band, loads(owner));
    }

    private static boolean isWithin(Band band, int[] load) {
        for (int m = 0; m < load.length; m++) {
            if (load[m] < band.low()[m] || load[m] > band.high()[m]) {
                return false;
            }
        }
        return true;
    }

    private Planned plannedFor(int[] owner, Readers readers, boolean[] capped, Band band) {
        Kinds kinds = Kinds.read(group, readers.readers(), capped, CELLS);
        return kinds == null
                ? new Planned(topicByTopic(owner, readers, capped, band), false)
                : new Planned(plannedByCounts(owner, readers, kinds), readers.fairest());
    }

    // -- every member may read everything -----------------------------------------------------------------------------

    private int[] equalPlan() {
        Band band = fairBand();
        int[] owner = group.owner.clone();
        int[] load = band.kept(loads(owner), group.partitions());
        KeptClaims.release(group, owner, load, 1, null);
        int[] free = Order.where(owner.length, p -> owner[p] == Group.NOBODY);
        new Fill(group, ranking, epsilon, owner).run(free, band, load, null);
        return owner;
    }

    private int[] loads(int[] owner) {
        int[] out = new int[members];
        for (int m : owner) {
            if (m >= 0) {
                out[m]++;
            }
        }
        return out;
    }

    // -- different subscriptions, racks and caps ----------------------------------------------------------------------

    private int[] plannedByCounts(int[] before, Readers readers, Kinds kinds) {
        int count = kinds.counts().length;
        int[] owner = before.clone();
        int[][] owned = new int[members][count];
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] >= 0 && kinds.allowed()[owner[p]][kinds.of()[p]]) {
                owned[owner[p]][kinds.of()[p]]++;
            } else {
                owner[p] = Group.NOBODY;
            }
        }
        int[][] preferred = preferred(kinds, readers.pieces());
        int[][] given = counts(kinds, owned, preferred, readers.fairest() && isWhole(preferred, kinds));
        int[][] kept = new int[members][count];
        for (int m = 0; m < members; m++) {
            for (int k = 0; k < count; k++) {
                kept[m][k] = Math.min(owned[m][k], given[m][k]);
            }
        }
        KeptClaims.release(group, owner, Arrays.stream(kept).flatMapToInt(Arrays::stream).toArray(), count, kinds.of());
        fillKinds(kinds, given, kept, owner);
        return owner;
    }

    /** Whether the counts place all partitions. */
    private static boolean isWhole(int[][] counts, Kinds kinds) {
        int[] placed = new int[kinds.counts().length];
        for (int[] mine : counts) {
            for (int k = 0; k < placed.length; k++) {
                placed[k] += mine[k];
            }
        }
        return Arrays.equals(placed, kinds.counts());
    }

    /**
     * Solves within the band; where subscriptions differ or no plan is in it, with the best exact loads.
     *
     * @param fairest whether the preferred counts have the most even loads: if these are outside the band, so is every plan
     */
    private int[][] counts(Kinds kinds, int[][] owned, int[][] preferred, boolean fairest) {
        if (group.equal) {
            int[] held = sums(owned);
            Band band = Band.fair(Arrays.stream(kinds.counts()).sum(), members, epsilon);
            long least = Arrays.stream(held).sum() - Arrays.stream(band.kept(held, group.partitions())).sum();
            if (preferred != null && isOptimal(preferred, kinds, owned, band, least, fairest)) {
                return preferred;
            }
            MinCostFlow flow = new MinCostFlow(kinds.counts(), kinds.allowed(), kinds.away(), owned);
            boolean beyond = fairest && !isWithin(band, sums(preferred));
            if (!beyond && flow.solve(new Exchange(band.low(), band.high(), false), preferred, least)) {
                return flow.given;
            }
        }
        int[] best = fairest ? sums(preferred) : FairestLoads.find(kinds.counts(), kinds.allowed());
        MinCostFlow flow = new MinCostFlow(kinds.counts(), kinds.allowed(), kinds.away(), owned);
        flow.solve(new Exchange(best, best, true), fairest ? preferred : null, 0);
        return flow.given;
    }

    private static int[] sums(int[][] counts) {
        return Arrays.stream(counts).mapToInt(mine -> Arrays.stream(mine).sum()).toArray();
    }

    /** The pieces as counts of kinds, for rows of pieces that are one kind; null without capped topics. */
    private int[][] preferred(Kinds kinds, int[][] pieces) {
        if (pieces == null) {
            return null;
        }
        int count = kinds.counts().length;
        int[] size = new int[count];
        int[] topic = new int[count];
        for (int p = group.partitions() - 1; p >= 0; p--) {
            size[kinds.of()[p]]++;
            topic[kinds.of()[p]] = group.topicOf[p];
        }
        int[][] preferred = new int[members][count];
        for (int k = 0; k < count; k++) {
            int[] mine = pieces[topic[k]];
            boolean one = Arrays.stream(mine).sum() == size[k];
            for (int m = 0; m < members && one; m++) {
                preferred[m][k] = mine[m];
            }
        }
        return preferred;
    }

    /**
     * Whether counts are obviously optimal: all placed, on rack, and only required moves.
     *
     * <p>The loads are within the band; or no claim moves, and the loads are the fairest, or those of members with a readable
     * kind differ by at most one.
     */
    private boolean isOptimal(
            int[][] counts, Kinds kinds, int[][] owned, Band band, long least, boolean fairest) {
        int[] placed = new int[kinds.counts().length];
        boolean within = true;
        boolean alike = true;
        long moved = 0;
        int lowest = Integer.MAX_VALUE;
        int highest = Integer.MIN_VALUE;
        for (int m = 0; m < members; m++) {
            int load = 0;
            boolean able = false;
            for (int k = 0; k < placed.length; k++) {
                if (kinds.away()[m][k]) {
                    return false;
                }
                placed[k] += counts[m][k];
                load += counts[m][k];
                moved += Math.max(owned[m][k] - counts[m][k], 0);
                able |= kinds.allowed()[m][k];
            }
            within &= load >= band.low()[m] && load <= band.high()[m];
            alike &= band.high()[m] == band.high()[0];
            lowest = able ? Math.min(lowest, load) : lowest;
            highest = able ? Math.max(highest, load) : highest;
        }
        if (!Arrays.equals(placed, kinds.counts())) {
            return false;
        }
        return within ? moved <= least : moved == 0 && (fairest || alike && highest - lowest <= 1);
    }

    /** Kinds with the most free partitions choose first. */
    private void fillKinds(Kinds kinds, int[][] given, int[][] kept, int[] owner) {
        int count = kinds.counts().length;
        int[] order = new int[count];
        int[][] free = new int[count][];
        for (int k = 0; k < count; k++) {
            free[k] = new int[kinds.counts()[k]];
            order[k] = -kinds.counts()[k];
            for (int m = 0; m < members; m++) {
                order[k] += kept[m][k];
            }
        }
        int[] found = new int[count];
        for (int p = 0; p < owner.length; p++) {
            int kind = kinds.of()[p];
            if (owner[p] == Group.NOBODY && found[kind] < free[kind].length) {
                free[kind][found[kind]++] = p;
            }
        }
        Fill fill = new Fill(group, ranking, epsilon, owner);
        for (int k : Order.ascending(order)) {
            int[] quota = new int[members];
            for (int m = 0; m < members; m++) {
                quota[m] = given[m][k] - kept[m][k];
            }
            give(fill, Arrays.copyOf(free[k], found[k]), quota);
        }
    }

    private void give(Fill fill, int[] free, int[] quota) {
        int sum = Arrays.stream(quota).sum();
        if (sum > 0) {
            double[] share = Arrays.stream(quota).mapToDouble(part -> (double) part / sum).toArray();
            fill.run(free, new Band(quota, quota), new int[members], share);
        }
    }

    // -- groups too large for counts ----------------------------------------------------------------------------------

    /** Topics with few readers first; claims stay while their member is below its bound, the rest goes to the least loaded. */
    private int[] topicByTopic(int[] before, Readers chosen, boolean[] capped, Band band) {
        BitSet[] readers = chosen.readers();
        int[] owner = new int[group.partitions()];
        Arrays.fill(owner, Group.NOBODY);
        int[] load = new int[members];
        Fill fill = new Fill(group, ranking, epsilon, owner);
        Integer[] topics = IntStream.range(0, readers.length).boxed().toArray(Integer[]::new);
        Arrays.sort(topics, (one, two) -> {
            int byReaders = Integer.compare(readers[one].cardinality(), readers[two].cardinality());
            return byReaders != 0 ? byReaders : Integer.compare(group.size(two), group.size(one));
        });
        for (int topic : topics) {
            int[] quota = capped[topic] && pieces(chosen, topic)
                    ? given(chosen.pieces()[topic], load)
                    : quota(before, topic, readers[topic], load, band);
            int[] keeps = quota.clone();
            int[] free = new int[group.size(topic)];
            int count = 0;
            for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
                int m = before[p];
                if (m >= 0 && keeps[m] > 0) {
                    owner[p] = m;
                    keeps[m]--;
                } else {
                    free[count++] = p;
                }
            }
            give(fill, Arrays.copyOf(free, count), keeps);
        }
        return owner;
    }

    private static boolean pieces(Readers chosen, int topic) {
        return chosen.pieces() != null && Arrays.stream(chosen.pieces()[topic]).anyMatch(piece -> piece > 0);
    }

    private static int[] given(int[] pieces, int[] load) {
        for (int m = 0; m < load.length; m++) {
            load[m] += pieces[m];
        }
        return pieces.clone();
    }

    /** How many partitions of a topic each member is to have; adds them to the loads. */
    private int[] quota(int[] before, int topic, BitSet readers, int[] load, Band band) {
        int[] quota = new int[members];
        int left = group.size(topic);
        for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
            int m = before[p];
            if (m >= 0 && readers.get(m) && load[m] < band.high()[m]) {
                quota[m]++;
                load[m]++;
                left--;
            }
        }
        int[] who = readers.stream().toArray();
        if (who.length > 0) {
            int[] more = FairestLoads.pour(left, Arrays.stream(who).map(m -> load[m]).toArray());
            for (int i = 0; i < who.length; i++) {
                quota[who[i]] += more[i];
                load[who[i]] += more[i];
            }
        }
        return quota;
    }
}
