package azimuth.planner;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;

/**
 * Divides the topics of a few members at the lowest cost within the bounds of their loads.
 *
 * <p>A dynamic programme over the topics finds which vectors of loads can be reached at which cost. The vectors, of all
 * loads but the last, are bits of one number for each cost, so a way to divide a topic takes a shift and an "or" for
 * thousands of vectors at once. Costs are counted above the lowest of each topic, and nothing that costs more than a
 * known division is followed.
 */
final class ReachableLoads {
    /** A way to divide a topic, as partitions of each member, and its cost above the cheapest way. */
    record Way(long cost, int[] counts) {}

    private static final int BITS_A_UNIT = 8192;
    private static final int UNITS = 4;
    private static final long MOST_WORK = 100_000;
    private static final int MOST_KNOWN = 512;

    private final int[] low;
    private final int[] high;
    private final long budget;
    private final LongSupplier draws;
    private final Map<List<Integer>, BigInteger> known;
    private final int[] shape;
    private final int size;
    /** Work done, as Python's planner counts it. */
    long work;

    /**
     * Takes the members.
     *
     * @param low smallest loads
     * @param high largest loads
     * @param budget cost of a known division
     * @param draws numbers that select among divisions of equal cost
     * @param known sets of loads that divisions of other members needed, too
     */
    ReachableLoads(int[] low, int[] high, long budget, LongSupplier draws, Map<List<Integer>, BigInteger> known) {
        this.known = known;
        this.low = low;
        this.high = high;
        this.budget = budget;
        this.draws = draws;
        shape = Arrays.stream(high).limit(high.length - 1L).map(most -> most + 1).toArray();
        size = Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    }

    /**
     * Finds the cheapest ways to divide all topics.
     *
     * @param topics their ways, cheapest first; the known division is one of them, and within the bounds
     * @return one way for each topic, or nothing if this takes too much work
     */
    List<int[]> cheapest(List<List<Way>> topics) {
        TreeMap<Long, BigInteger> reached = new TreeMap<>(Map.of(0L, BigInteger.ONE));
        List<TreeMap<Long, BigInteger>> tables = new ArrayList<>(List.of(reached));
        int total = 0;
        for (List<Way> ways : topics) {
            reached = with(ways, reached);
            tables.add(reached);
            total += Arrays.stream(ways.get(0).counts).sum();
            if (work > MOST_WORK) {
                return List.of();
            }
        }
        return walkBack(topics, tables, total);
    }

    /** The loads that are reached with one more topic, by cost. */
    private TreeMap<Long, BigInteger> with(List<Way> ways, TreeMap<Long, BigInteger> reached) {
        TreeMap<Long, BigInteger> longer = new TreeMap<>();
        for (Way way : ways) {
            int[] most = new int[shape.length];
            for (int i = 0; i < most.length; i++) {
                most[i] = shape[i] - 1 - way.counts[i];
            }
            BigInteger room = between(new int[shape.length], most);
            int by = index(way.counts);
            for (Map.Entry<Long, BigInteger> each : reached.headMap(budget - way.cost, true).entrySet()) {
                work += UNITS * (1L + size / BITS_A_UNIT);
                longer.merge(each.getKey() + way.cost, each.getValue().and(room).shiftLeft(by), BigInteger::or);
            }
        }
        longer.values().removeIf(loads -> loads.signum() == 0);
        return longer;
    }

    private List<int[]> walkBack(List<List<Way>> topics, List<TreeMap<Long, BigInteger>> tables, int total) {
        BigInteger box = between(Arrays.copyOf(low, shape.length), Arrays.copyOf(high, shape.length));
        for (Map.Entry<Long, BigInteger> each : tables.get(topics.size()).entrySet()) {
            int[] at = within(each.getValue().and(box), total);
            if (at != null) {
                return walkBack(topics, tables, each.getKey(), at);
            }
        }
        throw new IllegalStateException("the known division is not within the bounds");
    }

    /** The first vector of loads, from a random one on, whose rest fits the last member; null if there is none. */
    private int[] within(BigInteger loads, int total) {
        int start = (int) (draws.getAsLong() % size);
        BigInteger above = loads.shiftRight(start);
        for (BigInteger part : List.of(above, loads.subtract(above.shiftLeft(start)))) {
            BigInteger left = part;
            while (left.signum() != 0) {
                int first = left.getLowestSetBit();
                int[] at = loads(part == above ? first + start : first);
                int rest = total - Arrays.stream(at).sum();
                if (low[shape.length] <= rest && rest <= high[shape.length]) {
                    return at;
                }
                left = left.clearBit(first);
            }
        }
        return null;
    }

    private List<int[]> walkBack(List<List<Way>> topics, List<TreeMap<Long, BigInteger>> tables, long cost, int[] end) {
        int[][] out = new int[topics.size()][];
        int[] at = end;
        long left = cost;
        for (int t = out.length - 1; t >= 0; t--) {
            List<Way> came = new ArrayList<>();
            for (Way way : topics.get(t)) {
                BigInteger before = tables.get(t).get(left - way.cost);
                if (before != null && fits(way.counts, at) && before.testBit(index(at) - index(way.counts))) {
                    came.add(way);
                }
            }
            Way way = came.get((int) (draws.getAsLong() % came.size()));
            left -= way.cost;
            out[t] = way.counts;
            at = at.clone();
            for (int i = 0; i < at.length; i++) {
                at[i] -= way.counts[i];
            }
        }
        return List.of(out);
    }

    private static boolean fits(int[] counts, int[] loads) {
        for (int i = 0; i < loads.length; i++) {
            if (counts[i] > loads[i]) {
                return false;
            }
        }
        return true;
    }

    private int index(int[] loads) {
        int index = 0;
        for (int i = 0; i < shape.length; i++) {
            index = index * shape[i] + loads[i];
        }
        return index;
    }

    private int[] loads(int index) {
        int[] out = new int[shape.length];
        int left = index;
        for (int i = out.length - 1; i >= 0; i--) {
            out[i] = left % shape[i];
            left /= shape[i];
        }
        return out;
    }

    /** The vectors of loads between two vectors. */
    private BigInteger between(int[] least, int[] most) {
        List<Integer> key = new ArrayList<>();
        for (int i = 0; i < shape.length; i++) {
            key.addAll(List.of(least[i], most[i], shape[i]));
        }
        if (known.size() >= MOST_KNOWN && !known.containsKey(key)) {
            known.clear();
        }
        return known.computeIfAbsent(key, k -> listBetween(least, most));
    }

    private BigInteger listBetween(int[] least, int[] most) {
        BigInteger loads = BigInteger.ONE;
        int stride = 1;
        for (int i = shape.length - 1; i >= 0; i--) {
            BigInteger row = loads;
            loads = BigInteger.ZERO;
            for (int load = least[i]; load <= most[i]; load++) {
                loads = loads.or(row.shiftLeft(load * stride));
            }
            stride *= shape[i];
        }
        return loads;
    }
}
