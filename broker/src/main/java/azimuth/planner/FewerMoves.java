package azimuth.planner;

import azimuth.planner.ReachableLoads.Way;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;

/**
 * Divides all partitions of a few members among them with fewer moves, while all loads stay within their bounds.
 *
 * <p>Two to five members, one of which misses a piece, form a pool. All their partitions are divided exactly ({@link
 * ReachableLoads}); then the next pool follows (large neighbourhood search, Shaw 1998). Among divisions of equal cost one
 * is drawn at random, because it may lead to a cheaper one.
 */
final class FewerMoves {
    private static final int POOL_SIZE = 5;
    private static final long STATES = 200_000; // vectors of loads; if there were more, the pool is made smaller
    // Work, in hand-overs that could be priced in the same time, as Python's planner counts it.
    private static final long POOL_WORK = 400;
    private static final long TOPIC_WORK = 60;
    private static final long LEAST_PATIENCE = 80_000; // work without fewer moves
    private static final long PATIENCE = 400_000; // less one for each cell of topics x members
    private static final int KINDS = 4; // ways to draw a member of the pool

    private final SearchState state;
    private final LongSupplier draws;
    private final Map<List<Integer>, Rated> known = new HashMap<>();
    private final Map<List<Integer>, BigInteger> loadSets = new HashMap<>();

    /**
     * Takes the start.
     *
     * @param state changed; all its loads are within their bounds, and no member is off rack
     * @param draws numbers that decide at random
     */
    FewerMoves(SearchState state, LongSupplier draws) {
        this.state = state;
        this.draws = draws;
    }

    /**
     * Divides pools until the moved claims reach the lower bound, or the work reaches its limit.
     *
     * @param least lower bound of the claims that move
     * @param end limit of the state's work
     */
    void run(long least, long end) {
        long start = state.work;
        long last = start;
        long patience = Math.max(LEAST_PATIENCE, PATIENCE - (long) state.topics * state.members);
        while (state.moved > least && state.work < Math.min(end, last + patience + (last - start))) {
            state.work += POOL_WORK;
            long before = state.moved;
            if (divide(pool())) {
                return; // the optimum
            }
            last = state.moved < before ? state.work : last;
        }
    }

    // -- the pool -----------------------------------------------------------------------------------------------------

    /** Draws an owner that misses a piece and one of its readers; adds others, most of them related to these. */
    private int[] pool() {
        int[] drawn = missingPiece((int) (draws.getAsLong() % Arrays.stream(state.missing).sum()));
        boolean[] inside = new boolean[state.members];
        int[] pool = new int[Math.min(POOL_SIZE, state.members)];
        pool[0] = drawn[0];
        inside[pool[0]] = true;
        long states = 1;
        for (int size = 1; size < pool.length; size++) {
            states *= state.band.high()[pool[size - 1]] + 1L;
            if (states > STATES) {
                return Arrays.copyOf(pool, size);
            }
            int[] among = size == 1 ? others(inside, m -> state.pieces[drawn[1]][m] > 0) : related(pool, size, inside);
            among = among.length > 0 ? among : others(inside, m -> true);
            pool[size] = among[(int) (draws.getAsLong() % among.length)];
            inside[pool[size]] = true;
        }
        return pool;
    }

    /** Members whose pieces differ from their claims, readers of a topic that the pool reads, or none: drawn at random. */
    private int[] related(int[] pool, int size, boolean[] inside) {
        int kind = (int) (draws.getAsLong() % KINDS);
        if (kind == 0) {
            return others(inside, m -> state.touched[m] > 0);
        }
        if (kind == KINDS - 1) {
            return new int[0];
        }
        int member = pool[(int) (draws.getAsLong() % size)];
        int[] topics = Order.where(state.topics, t -> state.pieces[t][member] > 0);
        if (topics.length == 0) {
            return topics;
        }
        int topic = topics[(int) (draws.getAsLong() % topics.length)];
        return others(inside, m -> state.pieces[topic][m] > 0);
    }

    private int[] others(boolean[] inside, IntPredicate test) {
        return Order.where(state.members, m -> !inside[m] && test.test(m));
    }

    /** An owner and a topic of which it misses a piece: the nth such pair, in the order of the members, then the topics. */
    private int[] missingPiece(int nth) {
        int member = 0;
        int left = nth;
        for (; left >= state.missing[member]; member++) {
            left -= state.missing[member];
        }
        int topic = 0;
        for (; left > 0 || state.pieces[topic][member] >= state.owned[topic][member]; topic++) {
            left -= state.pieces[topic][member] < state.owned[topic][member] ? 1 : 0;
        }
        return new int[] {member, topic};
    }

    // -- its division -------------------------------------------------------------------------------------------------

    /** The ways to divide a topic, and whether these are all. */
    private record Rated(List<Way> ways, boolean every) {}

    /** A topic, how the pool divides it now, and the ways to divide it. */
    private record Item(int topic, int[] now, List<Way> ways) {
        private boolean isFixed() {
            return ways.size() == 1;
        }

        private long most() {
            return ways.get(ways.size() - 1).cost();
        }
    }

    /** Divides all partitions of the pool, or of a smaller one if that takes too much work; whether no plan is better. */
    private boolean divide(int[] all) {
        for (int[] pool = all; pool.length > 1; pool = Arrays.copyOf(pool, pool.length - 1)) {
            List<Item> items = new ArrayList<>();
            boolean whole = true;
            for (int t = 0; t < state.topics; t++) {
                if (hasPiece(state.pieces[t], pool)) {
                    int[] row = state.pieces[t];
                    int[] now = Arrays.stream(pool).map(m -> row[m]).toArray();
                    Rated rated = rate(t, pool, now);
                    whole &= rated.every;
                    items.add(new Item(t, now, rated.ways));
                }
            }
            state.work += TOPIC_WORK * items.size();
            if (put(pool, items)) {
                return whole && pool.length == state.members;
            }
        }
        return false;
    }

    private static boolean hasPiece(int[] row, int[] pool) {
        for (int m : pool) { // no stream: nearly all topics of a large group have none, and each pool asks for each topic
            if (row[m] > 0) {
                return true;
            }
        }
        return false;
    }

    /** Divides the topics; says whether that was possible. */
    private boolean put(int[] pool, List<Item> all) {
        long budget = 0;
        for (Item item : all) {
            for (Way way : item.ways) {
                budget += Arrays.equals(way.counts(), item.now) ? way.cost() : 0;
            }
        }
        if (budget == 0) {
            return true;
        }
        long most = budget;
        List<Item> items = new ArrayList<>();
        for (Item item : all) {
            items.add(new Item(item.topic, item.now, item.ways.stream().filter(way -> way.cost() <= most).toList()));
        }
        // Topics with one way first, then those whose ways cost the same, then the most expensive: this keeps the number
        // of costs small for long.
        items.sort(Comparator.comparing((Item item) -> !item.isFixed())
                .thenComparing(item -> item.most() > 0)
                .thenComparing(item -> -item.most()));
        int[] low = Arrays.stream(pool).map(m -> state.band.low()[m]).toArray();
        int[] high = Arrays.stream(pool).map(m -> state.band.high()[m]).toArray();
        ReachableLoads loads = new ReachableLoads(low, high, budget, draws, loadSets);
        List<int[]> found = loads.cheapest(items.stream().map(Item::ways).toList());
        state.work += loads.work;
        for (int i = 0; i < found.size(); i++) {
            for (int j = 0; j < pool.length; j++) {
                state.put(items.get(i).topic, pool[j], found.get(i)[j]);
            }
        }
        return !found.isEmpty();
    }

    private Rated rate(int topic, int[] pool, int[] now) {
        int here = (int) Arrays.stream(now).filter(count -> count > 0).count();
        int most = Math.min(state.caps[topic] - (state.readers[topic] - here), pool.length);
        List<Integer> key = new ArrayList<>(List.of(most));
        for (int j = 0; j < pool.length; j++) {
            key.addAll(List.of(now[j], state.owned[topic][pool[j]], state.may[topic][pool[j]] ? 1 : 0));
        }
        return known.computeIfAbsent(key, k -> rate(topic, pool, now, most));
    }

    private Rated rate(int topic, int[] pool, int[] now, int most) {
        int[][] every = Divisions.all(Arrays.stream(now).sum(), most, pool.length);
        int[][] counts = every == null ? Divisions.near(now, most) : every;
        List<Way> ways = new ArrayList<>();
        for (int d = 0; d < counts.length; d++) {
            boolean allowed = true;
            long cost = 0;
            for (int j = 0; j < pool.length; j++) {
                allowed &= counts[d][j] == 0 || state.may[topic][pool[j]];
                cost += Math.max(state.owned[topic][pool[j]] - counts[d][j], 0);
            }
            if (allowed) {
                ways.add(new Way(cost, counts[d]));
            }
        }
        ways.sort(Comparator.comparingLong(Way::cost).thenComparing(Way::counts, Arrays::compare));
        long least = ways.get(0).cost();
        return new Rated(ways.stream().map(way -> new Way(way.cost() - least, way.counts())).toList(), every != null);
    }
}
