package azimuth.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The cheapest counts within the bounds of the loads: fewest partitions off rack, then fewest moved.
 *
 * <p>A minimum cost flow between kinds of partitions and members, solved by a good start and by cancelling negative
 * cycles (Klein 1967). Every choice between equals is the one that Python's planner makes, so the plans are the same.
 */
final class MinCostFlow {
    private static final long OFF = 1L << 24;
    private static final long NO = 1L << 50;
    private static final int EAGER = 4;
    private static final int ROUNDS = 2_000;
    /** Most cells that all turns may look at: the coordinator's thread waits, and 4e8 cells take about a second. */
    private static final long WORK = 400_000_000L;

    /** Partitions of each kind on each member, by member, then kind. */
    final int[][] given;

    private final int[] counts;
    private final boolean[][] allowed;
    private final int[][] owned;
    private final long[][] off;
    private final int members;
    private final int kinds;
    private final int[] load;
    private final long[][] giveCost;
    private final long[][] takeCost;
    private long work = WORK;

    MinCostFlow(int[] counts, boolean[][] allowed, boolean[][] away, int[][] owned) {
        this.counts = counts;
        this.allowed = allowed;
        this.owned = owned;
        members = allowed.length;
        kinds = counts.length;
        given = new int[members][kinds];
        load = new int[members];
        off = new long[members][kinds];
        giveCost = new long[members][kinds];
        takeCost = new long[members][kinds];
        for (int m = 0; m < members; m++) {
            for (int k = 0; k < kinds; k++) {
                off[m][k] = away[m][k] ? OFF : 0;
            }
        }
    }

    /**
     * Places everything within the bounds, at the least cost.
     *
     * @param wish counts to begin with, or null
     * @param least fewest claims that must move whatever is done, where known
     * @return whether a plan within the bounds was found
     */
    boolean solve(Exchange exchange, int[][] wish, long least) {
        boolean[][] near = new boolean[members][kinds];
        int[][] claims = new int[members][kinds];
        for (int m = 0; m < members; m++) {
            for (int k = 0; k < kinds; k++) {
                near[m][k] = allowed[m][k] && off[m][k] == 0;
                claims[m][k] = near[m][k] ? owned[m][k] : 0;
            }
        }
        if (wish != null) {
            keep(wish, exchange.high());
        }
        keep(claims, exchange.high());
        spread(near, exchange);
        keep(owned, exchange.high());
        spread(allowed, exchange);
        for (int m = 0; m < members; m++) {
            for (int k = 0; k < kinds; k++) {
                price(m, k);
            }
        }
        if (!connect(exchange)) {
            return false;
        }
        cancel(exchange, least);
        return true;
    }

    // -- the start ----------------------------------------------------------------------------------------------------

    private int[] free() {
        int[] free = counts.clone();
        for (int[] mine : given) {
            for (int k = 0; k < kinds; k++) {
                free[k] -= mine[k];
            }
        }
        return free;
    }

    private static boolean any(int[] values) {
        return Arrays.stream(values).anyMatch(value -> value != 0);
    }

    /** Takes claims as far as they are not placed yet and loads stay within the highest. */
    private void keep(int[][] claims, int[] high) {
        int[] free = free();
        // Kinds that few may read first: the others are easier to place elsewhere.
        int[] order = Order.ascending(FairestLoads.readers(allowed, kinds));
        for (int m = 0; m < members; m++) {
            int room = high[m] - load[m];
            int taken = 0;
            for (int k : order) {
                int claim = Math.max(claims[m][k] - given[m][k], 0);
                int wish = Math.min(Math.max(free[k], 0), claim);
                free[k] -= claim;
                int more = Math.min(Math.max(room, 0), wish);
                room -= wish;
                given[m][k] += more;
                taken += more;
            }
            load[m] += taken;
        }
    }

    /** Gives free partitions evenly to members with room, first to those below their lower bound. */
    private void spread(boolean[][] where, Exchange exchange) {
        int[] free = free();
        for (int kind : Order.ascending(FairestLoads.readers(where, kinds))) {
            for (int[] cap : new int[][] {exchange.low(), exchange.high()}) {
                int[] who = Order.where(members, m -> where[m][kind] && load[m] < cap[m]);
                if (free[kind] == 0 || who.length == 0) {
                    continue;
                }
                int[] more = pour(free[kind], who, cap);
                for (int i = 0; i < who.length; i++) {
                    given[who[i]][kind] += more[i];
                    load[who[i]] += more[i];
                    free[kind] -= more[i];
                }
            }
        }
    }

    /** Gives units one by one to the lowest load that is below its cap, computed at once. */
    private int[] pour(int amount, int[] who, int[] cap) {
        int[] room = new int[who.length];
        long allRoom = 0;
        int low = Integer.MAX_VALUE;
        int high = 0;
        for (int i = 0; i < who.length; i++) {
            room[i] = cap[who[i]] - load[who[i]];
            allRoom += room[i];
            low = Math.min(low, load[who[i]]);
            high = Math.max(high, cap[who[i]]);
        }
        if (amount >= allRoom) {
            return room;
        }
        while (low < high) { // the highest level that needs no more than there is
            int middle = (low + high + 1) >>> 1;
            long needs = 0;
            for (int i = 0; i < who.length; i++) {
                needs += Math.min(Math.max(middle - load[who[i]], 0), room[i]);
            }
            if (needs <= amount) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        int[] out = new int[who.length];
        int left = amount;
        for (int i = 0; i < who.length; i++) {
            out[i] = Math.min(Math.max(low - load[who[i]], 0), room[i]);
            left -= out[i];
        }
        for (int i = 0; i < who.length && left > 0; i++) {
            if (out[i] < room[i] && load[who[i]] + out[i] == low) {
                out[i]++;
                left--;
            }
        }
        return out;
    }

    // -- prices and paths ---------------------------------------------------------------------------------------------

    private void price(int m, int k) {
        giveCost[m][k] = allowed[m][k] ? off[m][k] - (given[m][k] < owned[m][k] ? 1 : 0) : NO;
        takeCost[m][k] = given[m][k] > 0 ? (given[m][k] <= owned[m][k] ? 1 : 0) - off[m][k] : NO;
    }

    /** Places what the greedy start could not, along paths; says whether all is placed and no load too small. */
    private boolean connect(Exchange exchange) {
        for (int[] free = free(); any(free); free = free()) {
            if (!push(free, new boolean[members], below(exchange.high()))) {
                return false;
            }
        }
        for (boolean[] shortOf = below(exchange.low()); contains(shortOf); shortOf = below(exchange.low())) {
            boolean[] sources = new boolean[members];
            for (int m = 0; m < members; m++) {
                sources[m] = load[m] > exchange.low()[m];
            }
            if (!push(new int[kinds], sources, shortOf)) {
                return false;
            }
        }
        return true;
    }

    private boolean[] below(int[] bound) {
        boolean[] out = new boolean[members];
        for (int m = 0; m < members; m++) {
            out[m] = load[m] < bound[m];
        }
        return out;
    }

    private static boolean contains(boolean[] values) {
        for (boolean value : values) {
            if (value) {
                return true;
            }
        }
        return false;
    }

    /** Moves one partition along a cheapest path to each target that one leads to; says whether any was. */
    private boolean push(int[] free, boolean[] sources, boolean[] targets) {
        long[] byKind = new long[kinds];
        long[] byMember = new long[members];
        int[] fromKind = new int[members];
        int[] fromMember = new int[kinds];
        Arrays.fill(fromKind, -1);
        Arrays.fill(fromMember, -1);
        for (int k = 0; k < kinds; k++) {
            byKind[k] = free[k] > 0 ? 0 : NO;
        }
        for (int m = 0; m < members; m++) {
            byMember[m] = sources[m] ? 0 : NO;
        }
        boolean better = true;
        for (int turn = 0; better && turn < members + kinds; turn++) {
            better = relaxKinds(byMember, byKind, fromMember, true);
            for (int m = 0; m < members; m++) {
                int best = bestKind(byKind, m, true);
                long cost = best < 0 ? NO : byKind[best] + Math.max(giveCost[m][best], 0);
                if (cost < byMember[m] && !sources[m]) {
                    byMember[m] = cost;
                    fromKind[m] = best;
                    better = true;
                }
            }
        }
        boolean pushed = false;
        for (int end : ends(targets, byMember)) {
            pushed |= pushTo(end, fromKind, fromMember, sources, free);
        }
        return pushed;
    }

    private int[] ends(boolean[] targets, long[] byMember) {
        Integer[] ends = Arrays.stream(Order.where(members, m -> targets[m] && byMember[m] < NO >> 1)).boxed()
                .toArray(Integer[]::new);
        Arrays.sort(ends, (one, two) -> Long.compare(byMember[one], byMember[two]));
        return Arrays.stream(ends).mapToInt(Integer::intValue).toArray();
    }

    /** One turn of Bellman-Ford from members to kinds; gains count as nothing where `gains` are left out. */
    private boolean relaxKinds(long[] byMember, long[] byKind, int[] fromMember, boolean withoutGains) {
        long[] least = new long[kinds];
        int[] best = new int[kinds];
        Arrays.fill(least, Long.MAX_VALUE);
        for (int m = 0; m < members; m++) {
            long[] cost = takeCost[m];
            long at = byMember[m];
            for (int k = 0; k < kinds; k++) {
                long through = at + (withoutGains ? Math.max(cost[k], 0) : cost[k]);
                if (through < least[k]) {
                    least[k] = through;
                    best[k] = m;
                }
            }
        }
        work -= 2L * members * kinds;
        boolean better = false;
        for (int k = 0; k < kinds; k++) {
            if (least[k] < byKind[k]) {
                byKind[k] = least[k];
                fromMember[k] = best[k];
                better = true;
            }
        }
        return better;
    }

    private int bestKind(long[] byKind, int m, boolean withoutGains) {
        long[] cost = giveCost[m];
        long least = Long.MAX_VALUE;
        int best = -1;
        for (int k = 0; k < kinds; k++) {
            long through = byKind[k] + (withoutGains ? Math.max(cost[k], 0) : cost[k]);
            if (through < least) {
                least = through;
                best = k;
            }
        }
        return best;
    }

    private boolean pushTo(int end, int[] fromKind, int[] fromMember, boolean[] sources, int[] free) {
        List<int[]> steps = new ArrayList<>();
        boolean[] seen = new boolean[members];
        seen[end] = true;
        for (int at = end; ; ) {
            int kind = fromKind[at];
            int before = kind >= 0 ? fromMember[kind] : -1;
            if (kind < 0 || before >= 0 && seen[before]) {
                return false;
            }
            steps.add(new int[] {before, kind, at});
            if (before < 0) {
                if (free[kind] < 1) {
                    return false;
                }
                free[kind]--;
                break;
            }
            if (given[before][kind] < 1) {
                return false;
            }
            if (sources[before]) {
                break;
            }
            at = before;
            seen[before] = true;
        }
        for (int[] step : steps) {
            if (step[0] >= 0) {
                change(step[0], step[1], -1);
            }
            change(step[2], step[1], 1);
        }
        return true;
    }

    private void change(int member, int kind, int by) {
        given[member][kind] += by;
        load[member] += by;
        price(member, kind);
    }

    // -- negative cycles ----------------------------------------------------------------------------------------------

    private void cancel(Exchange exchange, long least) {
        long moved = 0;
        boolean away = false;
        for (int m = 0; m < members; m++) {
            for (int k = 0; k < kinds; k++) {
                moved += owned[m][k] - Math.min(owned[m][k], given[m][k]);
                away |= given[m][k] > 0 && off[m][k] > 0;
            }
        }
        if (moved <= least && !away) {
            return;
        }
        for (int round = 0; round < ROUNDS && work > 0; round++) {
            List<List<int[]>> cycles = negativeCycles(exchange);
            if (cycles.isEmpty()) {
                return;
            }
            for (List<int[]> cycle : cycles) {
                apply(cycle, exchange);
            }
        }
    }

    /** Disjoint cycles as (giver, kind or -1 - class, taker). */
    private List<List<int[]>> negativeCycles(Exchange exchange) {
        Exchange.Classes classes = exchange.classes(load);
        long[] byKind = new long[kinds];
        long[] byMember = new long[members];
        long[] bySwap = new long[classes.count()];
        int[] via = new int[members];
        int[] fromMember = new int[kinds];
        int[] fromSwap = new int[classes.count()];
        Arrays.fill(via, -1);
        Arrays.fill(fromMember, -1);
        Arrays.fill(fromSwap, -1);
        for (int turn = 1; turn < 2 * (members + kinds) + 4 && work > 0; turn++) {
            boolean better = relaxKinds(byMember, byKind, fromMember, false);
            better |= relaxSwaps(classes.take(), byMember, bySwap, fromSwap);
            better |= relaxMembers(classes.give(), byKind, byMember, bySwap, via);
            if (!better) {
                return List.of();
            }
            if (turn <= EAGER || turn % EAGER == 0) {
                List<List<int[]>> found = cycles(via, fromMember, fromSwap);
                if (!found.isEmpty()) {
                    return found;
                }
            }
        }
        return List.of();
    }

    private boolean relaxSwaps(int[] take, long[] byMember, long[] bySwap, int[] fromSwap) {
        int[] best = new int[bySwap.length];
        Arrays.fill(best, -1);
        for (int m = 0; m < members; m++) {
            if (take[m] >= 0 && (best[take[m]] < 0 || byMember[m] < byMember[best[take[m]]])) {
                best[take[m]] = m;
            }
        }
        boolean better = false;
        for (int c = 0; c < best.length; c++) {
            if (best[c] >= 0 && byMember[best[c]] < bySwap[c]) {
                bySwap[c] = byMember[best[c]];
                fromSwap[c] = best[c];
                better = true;
            }
        }
        return better;
    }

    private boolean relaxMembers(int[] give, long[] byKind, long[] byMember, long[] bySwap, int[] via) {
        boolean better = false;
        for (int m = 0; m < members; m++) {
            int best = bestKind(byKind, m, false);
            if (best >= 0 && byKind[best] + giveCost[m][best] < byMember[m]) {
                byMember[m] = byKind[best] + giveCost[m][best];
                via[m] = best;
                better = true;
            }
            if (give[m] >= 0 && bySwap[give[m]] < byMember[m]) {
                byMember[m] = bySwap[give[m]];
                via[m] = kinds + give[m];
                better = true;
            }
        }
        return better;
    }

    private void apply(List<int[]> cycle, Exchange exchange) {
        long cost = 0;
        int amount = Integer.MAX_VALUE;
        for (int[] step : cycle) {
            int giver = step[0];
            int kind = step[1];
            int taker = step[2];
            if (kind < 0) { // `giver` takes one more for good, `taker` one less: their loads are exchanged
                amount = Math.min(amount, exchange.step(load, giver, taker));
                continue;
            }
            cost += takeCost[giver][kind] + giveCost[taker][kind];
            int has = given[giver][kind];
            int claim = owned[giver][kind];
            amount = Math.min(amount, has > claim ? has - claim : has);
            if (given[taker][kind] < owned[taker][kind]) {
                amount = Math.min(amount, owned[taker][kind] - given[taker][kind]);
            }
        }
        if (cost >= 0 || amount < 1) {
            return;
        }
        for (int[] step : cycle) {
            if (step[1] >= 0) {
                change(step[0], step[1], -amount);
                change(step[2], step[1], amount);
            }
        }
    }

    /** Cycles of the parent pointers. */
    private List<List<int[]>> cycles(int[] via, int[] fromMember, int[] fromSwap) {
        int[] before = new int[members];
        for (int m = 0; m < members; m++) {
            before[m] = via[m] < 0 ? -1 : via[m] < kinds ? fromMember[via[m]] : fromSwap[via[m] - kinds];
        }
        int[] far = before.clone();
        int doublings = 33 - Integer.numberOfLeadingZeros(Math.max(1, members));
        for (int i = 0; i < doublings; i++) {
            int[] next = new int[members];
            for (int m = 0; m < members; m++) {
                next[m] = far[m] >= 0 ? far[far[m]] : -1;
            }
            far = next;
        }
        List<List<int[]>> found = new ArrayList<>();
        boolean[] seen = new boolean[members];
        for (int start : Arrays.stream(far).filter(m -> m >= 0).sorted().distinct().toArray()) {
            List<int[]> cycle = new ArrayList<>();
            for (int at = start; !seen[at]; at = before[at]) {
                seen[at] = true;
                cycle.add(new int[] {before[at], via[at] < kinds ? via[at] : kinds - 1 - via[at], at});
            }
            if (!cycle.isEmpty()) {
                found.add(cycle);
            }
        }
        return found;
    }
}
