package azimuth.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntPredicate;

/**
 * Divides all partitions of a few members among them: better than with single hand-overs.
 *
 * <p>A few members form a pool, and all their partitions are divided exactly; then the next pool follows (large
 * neighbourhood search, Shaw 1998). This class divides two to four members by dynamic programming over their loads. Where
 * all loads are within their bounds and no racks count, {@link FewerMoves} divides more of them in less time. Among
 * divisions of equal cost one is drawn at random, from a fixed sequence (Knuth's MMIX), because it may lead to a cheaper
 * one.
 */
final class PoolSearch {
    private static final int POOL_SIZE = 4;
    private static final long STATES = 10_000; // vectors of loads in a table; if there were more, the pool is made smaller
    // The cost of a division; the lowest bits select at random among equal costs.
    private static final long CLAIM = 1L << 14;
    private static final long OFF = 1L << 32;
    private static final long OUTSIDE = 1L << 48;
    private static final long FAR = 1L << 12;
    private static final long NO = 1L << 61;
    private static final int MIXED = 8;
    // Work, in hand-overs that could be priced in the same time, as Python's planner counts it.
    private static final long POOL_WORK = 1_500;
    private static final long TOPIC_WORK = 200;
    private static final long RACK_WORK = 600;
    private static final long DIVISION_WORK = 30;
    private static final long CELLS_A_UNIT = 64;

    private final SearchState state;
    private long drawn = 1;

    PoolSearch(SearchState state) {
        this.state = state;
    }

    /**
     * Divides pools until the moved claims reach the lower bound, or the work reaches its limit.
     *
     * <p>If loads are outside their bounds, the search runs until all are inside. Racks start a search only if no member
     * owns partitions: otherwise partitions of a stable group would move.
     *
     * @param least lower bound of the claims that move
     * @param end limit of the state's work
     */
    void run(long least, long end) {
        boolean balancing = state.countOutside() > 0;
        if (!balancing && !state.anyOff) {
            new FewerMoves(state, this::draw).run(least, end);
            return;
        }
        boolean forRacks = state.anyOff && !state.anyOwned;
        while (state.work < end && (balancing ? state.countOutside() > 0 : state.moved > least || forRacks)) {
            state.work += POOL_WORK + (long) state.topics * state.members / CELLS_A_UNIT;
            int[] pool = pool();
            if (pool.length > 1 && new Pool(pool).divide() && pool.length == state.members) {
                return; // the optimum
            }
        }
    }

    private long draw() {
        drawn = drawn * 6364136223846793005L + 1442695040888963407L;
        return drawn >>> 33;
    }

    private int oneOf(List<Integer> members) {
        return members.get((int) (draw() % members.size()));
    }

    // -- the pool -----------------------------------------------------------------------------------------------------

    /** Draws an owner that misses a piece and its reader, or a member above its bounds and one below; adds others. */
    private int[] pool() {
        List<Integer> pool = new ArrayList<>();
        List<Integer> near = state.countOutside() > 0 ? drawOutside(pool) : drawOwner(pool);
        List<Integer> left = members(m -> m != pool.get(0));
        long states = 1;
        while (!left.isEmpty() && pool.size() < POOL_SIZE) {
            states *= top(pool.get(pool.size() - 1)) + 1L;
            if (states > STATES) {
                break;
            }
            List<Integer> among = left;
            if (pool.size() == 1) {
                among = near;
            } else if (draw() % 2 != 0) {
                among = left.stream().filter(m -> state.touched[m] > 0).toList();
            }
            Integer next = oneOf(among.isEmpty() ? left : among);
            pool.add(next);
            left.remove(next);
        }
        return pool.stream().mapToInt(Integer::intValue).toArray();
    }

    private List<Integer> drawOutside(List<Integer> pool) {
        int first = oneOf(members(m -> state.outside(m) != 0));
        pool.add(first);
        boolean above = state.outside(first) > 0;
        return members(m -> above ? state.outside(m) < 0 : state.outside(m) > 0);
    }

    private List<Integer> drawOwner(List<Integer> pool) {
        List<int[]> found = new ArrayList<>();
        for (int t = 0; t < state.topics; t++) {
            for (int m = 0; m < state.members; m++) {
                if (state.moved > 0 ? state.pieces[t][m] < state.owned[t][m] : state.pieces[t][m] > 0) {
                    found.add(new int[] {t, m});
                }
            }
        }
        int[] at = found.get((int) (draw() % found.size()));
        pool.add(at[1]);
        return members(m -> state.pieces[at[0]][m] > 0 && m != at[1]);
    }

    private List<Integer> members(IntPredicate test) {
        List<Integer> out = new ArrayList<>();
        for (int m = 0; m < state.members; m++) {
            if (test.test(m)) {
                out.add(m);
            }
        }
        return out;
    }

    private int top(int member) {
        return Math.max(state.load[member], state.band.high()[member]);
    }

    // -- its division -------------------------------------------------------------------------------------------------

    /** The divisions of a topic, as counts of each pool member, and their costs. */
    private record Item(int topic, int[][] ways, long[] cost) {}

    /** Members whose partitions are divided again; a table has the lowest cost of each vector of all loads but the last. */
    private final class Pool {
        private final int[] pool;
        private final int last;
        private final int[] shape = {1, 1, 1};
        private final int size;
        private boolean whole = true;

        Pool(int[] pool) {
            this.pool = pool;
            last = pool.length - 1;
            for (int i = 0; i < last; i++) {
                shape[i] = top(pool[i]) + 1;
            }
            size = shape[0] * shape[1] * shape[2];
        }

        /** Divides all partitions at the lowest cost; says whether every division was tried. */
        boolean divide() {
            List<Item> items = items();
            List<long[]> tables = new ArrayList<>();
            long[] table = new long[size];
            Arrays.fill(table, NO);
            table[0] = 0;
            tables.add(table);
            for (Item item : items) {
                long mixer = draw();
                for (int d = 0; d < item.cost.length; d++) {
                    item.cost[d] += Long.remainderUnsigned(Hash.mix(d + mixer), MIXED);
                }
                table = with(item, table);
                tables.add(table);
                state.work += TOPIC_WORK + item.cost.length * (DIVISION_WORK + size / CELLS_A_UNIT);
            }
            walkBack(items, tables, cheapest(table));
            return whole;
        }

        private int index(int one, int two, int three) {
            return (one * shape[1] + two) * shape[2] + three;
        }

        /** Count of the i-th load of the table in a division; 0 where the pool is smaller. */
        private int part(int[] way, int i) {
            return i < last ? way[i] : 0;
        }

        private long[] with(Item item, long[] table) {
            long[] longer = new long[size];
            Arrays.fill(longer, NO);
            for (int d = 0; d < item.cost.length; d++) {
                int[] way = item.ways[d];
                int shift = index(part(way, 0), part(way, 1), part(way, 2));
                int third = shape[2] - part(way, 2);
                for (int one = 0; one < shape[0] - part(way, 0); one++) {
                    for (int two = 0; two < shape[1] - part(way, 1); two++) {
                        int from = index(one, two, 0);
                        for (int i = from; i < from + third; i++) {
                            longer[i + shift] = Math.min(longer[i + shift], table[i] + item.cost[d]);
                        }
                    }
                }
            }
            return longer;
        }

        /** Index of the vector of loads with the lowest cost, the rest on the last member of the pool. */
        private int cheapest(long[] table) {
            int all = Arrays.stream(pool).map(m -> state.load[m]).sum();
            int best = 0;
            long least = Long.MAX_VALUE;
            int[] loads = new int[3];
            for (int i = 0; i < size; i++) {
                loads[0] = i / (shape[1] * shape[2]);
                loads[1] = i / shape[2] % shape[1];
                loads[2] = i % shape[2];
                long out = outside(pool[last], all - loads[0] - loads[1] - loads[2]);
                for (int j = 0; j < last; j++) {
                    out += outside(pool[j], loads[j]);
                }
                long cost = table[i] + OUTSIDE * Math.min(out, FAR);
                if (cost < least) {
                    least = cost;
                    best = i;
                }
            }
            return best;
        }

        private int outside(int member, int load) {
            return Math.max(state.band.low()[member] - load, 0) + Math.max(load - state.band.high()[member], 0);
        }

        private void walkBack(List<Item> items, List<long[]> tables, int best) {
            int[] at = {best / (shape[1] * shape[2]), best / shape[2] % shape[1], best % shape[2]};
            for (int i = items.size() - 1; i >= 0; i--) {
                Item item = items.get(i);
                long[] before = tables.get(i);
                long after = tables.get(i + 1)[index(at[0], at[1], at[2])];
                for (int d = 0; d < item.cost.length; d++) {
                    int[] way = item.ways[d];
                    int one = at[0] - part(way, 0);
                    int two = at[1] - part(way, 1);
                    int three = at[2] - part(way, 2);
                    if (one >= 0 && two >= 0 && three >= 0 && before[index(one, two, three)] + item.cost[d] == after) {
                        for (int j = 0; j < pool.length; j++) {
                            state.put(item.topic, pool[j], way[j]);
                        }
                        at = new int[] {one, two, three};
                        break;
                    }
                }
            }
        }

        private List<Item> items() {
            List<Item> items = new ArrayList<>();
            for (int t = 0; t < state.topics; t++) {
                int[] mine = new int[pool.length];
                int held = 0;
                int here = 0;
                for (int j = 0; j < pool.length; j++) {
                    mine[j] = state.pieces[t][pool[j]];
                    held += mine[j];
                    here += mine[j] > 0 ? 1 : 0;
                }
                if (held > 0) {
                    int most = Math.min(state.caps[t] - (state.readers[t] - here), pool.length);
                    items.add(item(t, mine, held, most));
                }
            }
            return items;
        }

        private Item item(int topic, int[] mine, int held, int most) {
            int[][] ways = Divisions.all(held, most, pool.length);
            if (ways == null) {
                whole = false;
                ways = Divisions.near(mine, most);
            }
            boolean[] may = new boolean[pool.length];
            for (int j = 0; j < pool.length; j++) {
                may[j] = state.may[topic][pool[j]];
            }
            ways = Arrays.stream(ways).filter(way -> isAllowed(way, may)).toArray(int[][]::new);
            long[] cost = new long[ways.length];
            for (int d = 0; d < cost.length; d++) {
                for (int j = 0; j < pool.length; j++) {
                    cost[d] += CLAIM * Math.max(state.owned[topic][pool[j]] - ways[d][j], 0);
                }
            }
            if (state.anyOff) {
                long[] away = OffRack.count(state, topic, pool, ways);
                for (int d = 0; d < cost.length; d++) {
                    cost[d] += OFF * away[d];
                }
                state.work += RACK_WORK;
            }
            return new Item(topic, ways, cost);
        }

        private static boolean isAllowed(int[] way, boolean[] may) {
            for (int j = 0; j < way.length; j++) {
                if (way[j] != 0 && !may[j]) {
                    return false;
                }
            }
            return true;
        }
    }
}
