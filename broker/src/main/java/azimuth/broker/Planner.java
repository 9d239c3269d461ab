package azimuth.broker;

import java.util.Arrays;
import java.util.BitSet;
import java.util.stream.IntStream;

/**
 * Decides which member reads which partition: Python's {@code plan()} over topic ids.
 *
 * <p>Order of goals: every partition to exactly one subscriber; at most so many members a topic; loads within epsilon
 * of the fair share; few partitions off their reader's rack; few moved; each topic spread over nodes and members. A
 * pure function: no clock, no randomness, and the order of the input changes nothing.
 */
final class Planner {
    /** Members x kinds up to which different subscriptions, racks and caps are planned by counts: about 50 MB. */
    private static final long CELLS = 1_000_000;

    private final Group group;
    private final Settings settings;
    private final Strategy strategy;
    private final int members;

    Planner(Group group, Settings settings, Strategy strategy) {
        this.group = group;
        this.settings = settings;
        this.strategy = strategy;
        members = group.members.length;
    }

    /** Owner of each partition. */
    int[] plan() {
        if (members == 0 || group.partitions() == 0) {
            int[] none = new int[group.partitions()];
            Arrays.fill(none, Group.NOBODY);
            return none;
        }
        Fill.Ranking ranking = strategy.ranking(group, settings.seed());
        boolean[] capped = Readers.capped(group, settings);
        boolean some = false;
        for (boolean one : capped) {
            some |= one;
        }
        if (group.equal && !some && !group.anyOff()) {
            return equalPlan(ranking);
        }
        Band band = Band.fair(group.partitions(), members, settings.epsilon());
        if (!some) {
            return plannedFor(ranking, Kinds.subscribers(group), capped, band);
        }
        int[] stay = plannedFor(ranking, Readers.choose(group, settings, capped, band, ranking, false), capped, band);
        // Owners that keep all they have may leave a newcomer with nothing: then those above their bound give way.
        int[] giveWay = plannedFor(ranking, Readers.choose(group, settings, capped, band, ranking, true), capped, band);
        return Arrays.compare(highestFirst(giveWay), highestFirst(stay)) < 0 ? giveWay : stay;
    }

    private int[] plannedFor(Fill.Ranking ranking, BitSet[] readers, boolean[] capped, Band band) {
        Kinds kinds = Kinds.read(group, readers, capped, CELLS);
        return kinds == null ? topicByTopic(ranking, readers, band) : plannedByCounts(ranking, kinds);
    }

    private int[] highestFirst(int[] owner) {
        return Arrays.stream(loads(owner)).map(load -> -load).sorted().map(load -> -load).toArray();
    }

    // -- every member may read everything -----------------------------------------------------------------------------

    private int[] equalPlan(Fill.Ranking ranking) {
        Band band = Band.fair(group.partitions(), members, settings.epsilon());
        int[] owner = group.owner.clone();
        int[] load = band.kept(loads(owner), group.partitions());
        int[][] kept = new int[members][];
        for (int m = 0; m < members; m++) {
            kept[m] = new int[] {load[m]};
        }
        KeptClaims.release(group, owner, kept, null);
        int[] free = Order.where(owner.length, p -> owner[p] == Group.NOBODY);
        new Fill(group, ranking, settings.epsilon(), owner).run(free, band, load, null);
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

    private int[] plannedByCounts(Fill.Ranking ranking, Kinds kinds) {
        int count = kinds.counts().length;
        int[] owner = group.owner.clone();
        int[][] owned = new int[members][count];
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] >= 0 && kinds.allowed()[owner[p]][kinds.of()[p]]) {
                owned[owner[p]][kinds.of()[p]]++;
            } else {
                owner[p] = Group.NOBODY;
            }
        }
        int[][] given = counts(kinds, owned);
        int[][] kept = new int[members][count];
        for (int m = 0; m < members; m++) {
            for (int k = 0; k < count; k++) {
                kept[m][k] = Math.min(owned[m][k], given[m][k]);
            }
        }
        KeptClaims.release(group, owner, kept, kinds.of());
        fillKinds(ranking, kinds, given, kept, owner);
        return owner;
    }

    /** Solves within the band; where subscriptions differ or no plan is in it, with the best exact loads. */
    private int[][] counts(Kinds kinds, int[][] owned) {
        if (group.equal) {
            int[] held = Arrays.stream(owned).mapToInt(mine -> Arrays.stream(mine).sum()).toArray();
            Band band = Band.fair(Arrays.stream(kinds.counts()).sum(), members, settings.epsilon());
            long least = Arrays.stream(held).sum() - Arrays.stream(band.kept(held, group.partitions())).sum();
            MinCostFlow flow = new MinCostFlow(kinds.counts(), kinds.allowed(), kinds.away(), owned);
            if (flow.solve(new Exchange(band.low(), band.high(), false), null, least)) {
                return flow.given;
            }
        }
        int[] best = FairestLoads.find(kinds.counts(), kinds.allowed());
        MinCostFlow flow = new MinCostFlow(kinds.counts(), kinds.allowed(), kinds.away(), owned);
        flow.solve(new Exchange(best, best, true), null, 0);
        return flow.given;
    }

    /** Kinds with the most free partitions choose first. */
    private void fillKinds(Fill.Ranking ranking, Kinds kinds, int[][] given, int[][] kept, int[] owner) {
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
        Fill fill = new Fill(group, ranking, settings.epsilon(), owner);
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
    private int[] topicByTopic(Fill.Ranking ranking, BitSet[] readers, Band band) {
        int[] owner = new int[group.partitions()];
        Arrays.fill(owner, Group.NOBODY);
        int[] load = new int[members];
        Fill fill = new Fill(group, ranking, settings.epsilon(), owner);
        Integer[] topics = IntStream.range(0, readers.length).boxed().toArray(Integer[]::new);
        Arrays.sort(topics, (one, two) -> {
            int byReaders = Integer.compare(readers[one].cardinality(), readers[two].cardinality());
            return byReaders != 0 ? byReaders : Integer.compare(group.size(two), group.size(one));
        });
        for (int topic : topics) {
            int[] quota = quota(topic, readers[topic], load, band);
            int[] keeps = quota.clone();
            int[] free = new int[group.size(topic)];
            int count = 0;
            for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
                int m = group.owner[p];
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

    /** How many partitions of a topic each member is to have; adds them to the loads. */
    private int[] quota(int topic, BitSet readers, int[] load, Band band) {
        int[] quota = new int[members];
        int left = group.size(topic);
        for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
            int m = group.owner[p];
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
