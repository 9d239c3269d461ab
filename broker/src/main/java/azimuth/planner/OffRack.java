package azimuth.planner;

import java.util.Arrays;

/** Partitions of a topic that are off rack under another division among its readers, by the smallest cut (Ford and Fulkerson 1956). */
final class OffRack {
    private OffRack() {}

    /**
     * The fewest partitions off rack under each division of a topic among the members of a pool.
     *
     * <p>The readers outside the pool count as one reader that is local wherever one of them is local.
     */
    static long[] count(SearchState state, int topic, int[] pool, int[][] ways) {
        boolean[] inside = new boolean[state.members];
        Arrays.stream(pool).forEach(m -> inside[m] = true);
        int[] others = Order.where(state.members, m -> !inside[m] && state.pieces[topic][m] > 0);
        int theirs = Arrays.stream(others).map(m -> state.pieces[topic][m]).sum();
        int readers = pool.length + (others.length > 0 ? 1 : 0);
        long[] reached = reached(state, topic, pool, others, readers);
        long[] out = new long[ways.length];
        for (int d = 0; d < ways.length; d++) {
            long matched = Long.MAX_VALUE;
            for (int side = 0; side < reached.length; side++) {
                long cut = reached[side];
                for (int j = 0; j < readers; j++) {
                    int count = j < pool.length ? ways[d][j] : theirs;
                    cut += (side >> j & 1) == 0 ? count : 0;
                }
                matched = Math.min(matched, cut);
            }
            out[d] = Arrays.stream(ways[d]).sum() + theirs - matched;
        }
        return out;
    }

    /** Partitions of the topic that are local to some reader of each subset of the readers. */
    private static long[] reached(SearchState state, int topic, int[] pool, int[] others, int readers) {
        long[] reached = new long[1 << readers];
        for (int set = 0; set < state.off.length; set++) {
            int local = 0;
            for (int j = 0; j < readers; j++) {
                boolean near = j < pool.length && !state.off[set][pool[j]];
                for (int i = 0; j == pool.length && i < others.length; i++) {
                    near |= !state.off[set][others[i]];
                }
                local |= near ? 1 << j : 0;
            }
            for (int side = 0; side < reached.length; side++) {
                reached[side] += (side & local) != 0 ? state.sets[topic][set] : 0;
            }
        }
        return reached;
    }
}
