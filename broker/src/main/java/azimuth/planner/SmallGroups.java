package azimuth.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The exact optimum of small groups with worker caps; readers and loads have to be chosen together.
 *
 * <p>Dynamic programming over topics finds the cheapest way to each vector of loads. Costs are compared in the order of
 * the goals: off rack, moved, spread within the topic, rank. Loads stand in a number, six bits a member, the first member
 * highest; costs likewise, sixteen bits each: so numbers compare as their parts do.
 */
final class SmallGroups {
    private static final long WORK = 60_000; // steps of the dynamic programme
    private static final int MOST_MEMBERS = 8;
    private static final int MOST_PARTITIONS = 40;
    private static final int BITS = 6;
    private static final long PART = (1L << BITS) - 1;

    private final Group group;
    private final int[] caps;
    private final Ranking ranking;
    private final BitSet[] may;
    private final int members;

    private record Way(long cost, byte[] owners) {
        boolean isBefore(Way other) {
            return other == null || cost < other.cost || cost == other.cost && Arrays.compare(owners, other.owners) < 0;
        }
    }

    private record Step(long cost, long before, byte[] owners) {}

    private SmallGroups(Group group, int[] caps, Ranking ranking) {
        this.group = group;
        this.caps = caps;
        this.ranking = ranking;
        may = Kinds.subscribers(group);
        members = group.members.length;
    }

    /** Whether the exact optimum takes at most a fraction of a second. */
    static boolean isSmall(Group group) {
        int members = group.members.length;
        if (members > MOST_MEMBERS || group.partitions() > MOST_PARTITIONS) {
            return false;
        }
        long options = 1;
        long largest = 0;
        long work = 0;
        int placed = 0;
        for (int t = 0; t < group.topics(); t++) {
            int size = group.size(t);
            long ways = Divisions.choose(size + members - 1, members - 1);
            work += Divisions.choose(placed + members - 1, members - 1) * ways;
            options = t == 0 ? ways : Math.max(options, ways);
            largest = Math.max(largest, size);
            placed += size;
            if (work > WORK) {
                return false;
            }
        }
        return options * members * largest <= WORK;
    }

    /** Owner of each partition in the best plan. */
    static int[] plan(Group group, int[] caps, double epsilon, Ranking ranking) {
        SmallGroups small = new SmallGroups(group, caps, ranking);
        List<Map<Long, Step>> layers = new ArrayList<>();
        Map<Long, Step> reached = Map.of(0L, new Step(0, 0, new byte[0]));
        for (int t = 0; t < group.topics(); t++) {
            Map<Long, Way> options = small.options(t);
            Map<Long, Step> layer = new HashMap<>();
            reached.forEach((before, spent) -> options.forEach((counts, way) -> {
                long cost = spent.cost + way.cost;
                Step known = layer.get(before + counts);
                if (known == null || cost < known.cost || cost == known.cost && before < known.before) {
                    layer.put(before + counts, new Step(cost, before, way.owners));
                }
            }));
            layers.add(layer);
            reached = layer;
        }
        return small.walkBack(layers, small.bestLoads(reached, epsilon));
    }

    /** The cheapest owners for each vector of counts that the cap allows. */
    private Map<Long, Way> options(int topic) {
        int[] place = places(topic);
        Map<Long, Way> best = Map.of(0L, new Way(0, new byte[0]));
        for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
            int stay = group.owner[p];
            boolean[] away = group.off[group.racksOf[p]];
            Map<Long, Way> longer = new HashMap<>();
            best.forEach((counts, way) -> {
                boolean full = readers(counts) >= caps[topic];
                for (int m = 0; m < members; m++) {
                    long has = part(counts, m);
                    if (!may[topic].get(m) || has == 0 && full) {
                        continue;
                    }
                    long cost = (away[m] ? 1L << 48 : 0) + (stay != Group.NOBODY && stay != m ? 1L << 32 : 0)
                            + (2 * has + 1 << 16) + place[m];
                    byte[] owners = Arrays.copyOf(way.owners, way.owners.length + 1);
                    owners[way.owners.length] = (byte) m;
                    Way entry = new Way(way.cost + cost, owners);
                    long more = counts + one(m);
                    if (entry.isBefore(longer.get(more))) {
                        longer.put(more, entry);
                    }
                }
            });
            best = longer;
        }
        return best;
    }

    /** Place of each member in the topic's ranking. */
    private int[] places(int topic) {
        long[] scores = ranking.scores(topic, members);
        Integer[] order = new Integer[members];
        Arrays.setAll(order, m -> m);
        Arrays.sort(order, (one, two) -> Long.compareUnsigned(scores[two], scores[one]));
        int[] place = new int[members];
        for (int i = 0; i < members; i++) {
            place[order[i]] = i;
        }
        return place;
    }

    private long one(int member) {
        return 1L << BITS * (members - 1 - member);
    }

    private long part(long counts, int member) {
        return counts >>> BITS * (members - 1 - member) & PART;
    }

    private int readers(long counts) {
        int out = 0;
        for (int m = 0; m < members; m++) {
            out += part(counts, m) > 0 ? 1 : 0;
        }
        return out;
    }

    /** The cheapest loads within the bounds; if there are none, those with the smallest sorted vector. */
    private long bestLoads(Map<Long, Step> reached, double epsilon) {
        if (group.equal) {
            Band band = Band.fair(group.partitions(), members, epsilon);
            long best = -1;
            for (long loads : reached.keySet()) {
                if (isWithin(loads, band) && (best < 0 || isCheaper(loads, best, reached))) {
                    best = loads;
                }
            }
            if (best >= 0) {
                return best;
            }
        }
        long best = -1;
        int[] heights = null;
        for (long loads : reached.keySet()) {
            int[] mine = highestFirst(loads);
            int order = heights == null ? -1 : Arrays.compare(mine, heights);
            if (order < 0 || order == 0 && isCheaper(loads, best, reached)) {
                best = loads;
                heights = mine;
            }
        }
        return best;
    }

    private static boolean isCheaper(long one, long two, Map<Long, Step> reached) {
        long difference = reached.get(one).cost - reached.get(two).cost;
        return difference < 0 || difference == 0 && one < two;
    }

    private boolean isWithin(long loads, Band band) {
        for (int m = 0; m < members; m++) {
            if (part(loads, m) < band.low()[m] || part(loads, m) > band.high()[m]) {
                return false;
            }
        }
        return true;
    }

    private int[] highestFirst(long loads) {
        int[] negative = new int[members];
        for (int m = 0; m < members; m++) {
            negative[m] = (int) -part(loads, m);
        }
        Arrays.sort(negative);
        return Arrays.stream(negative).map(load -> -load).toArray();
    }

    private int[] walkBack(List<Map<Long, Step>> layers, long loads) {
        int[] owner = new int[group.partitions()];
        for (int t = layers.size() - 1; t >= 0; t--) {
            Step step = layers.get(t).get(loads);
            for (int i = 0; i < step.owners.length; i++) {
                owner[group.first[t] + i] = step.owners[i];
            }
            loads = step.before;
        }
        return owner;
    }
}
