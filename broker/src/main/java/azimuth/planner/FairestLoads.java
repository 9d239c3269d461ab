package azimuth.planner;

import java.util.Arrays;
import java.util.function.IntPredicate;

/**
 * The best possible loads under different subscriptions: the highest as low as it can be, then the next, and so on.
 *
 * <p>Kinds of partitions that the same members may read are counted, so the work grows with kinds x members and not
 * with partitions. A load vector is the smallest exactly when no chain of hand-overs leads from a member to one that
 * would still be less loaded after it took one more.
 *
 * <p>Source: semi-matchings, Harvey, Ladner, Lovasz and Tamir 2006.
 */
final class FairestLoads {
    private final int members;
    private final int kinds;
    private final boolean[][] allowed;
    private final int[][] given;
    private final int[] load;

    private FairestLoads(int[] counts, boolean[][] allowed) {
        this.allowed = allowed;
        members = allowed.length;
        kinds = counts.length;
        given = new int[members][kinds];
        load = new int[members];
    }

    /**
     * Loads such that no other distribution has a smaller sorted load vector.
     *
     * @param counts partitions of each kind
     * @param allowed whether a member may read a kind, by member, then kind
     */
    static int[] find(int[] counts, boolean[][] allowed) {
        FairestLoads loads = new FairestLoads(counts, allowed);
        loads.pourAll(counts);
        loads.exchange();
        return loads.load;
    }

    /** Gives units one by one to the least loaded, computed at once. */
    static int[] pour(int amount, int[] load) {
        int count = load.length;
        int[] order = Order.ascending(load);
        long filled = 0;
        double level = 0;
        for (int i = 0; i < count; i++) {
            filled += load[order[i]];
            level = (double) (amount + filled) / (i + 1);
            // The level is the first one that does not reach the next member's own.
            if (i + 1 == count || level <= load[order[i + 1]]) {
                break;
            }
        }
        int[] out = new int[count];
        int over = amount;
        for (int i = 0; i < count; i++) {
            out[i] = Math.max(0, (int) Math.floor(Band.round(level)) - load[i]);
            over -= out[i];
        }
        while (over > 0) {
            int[] after = new int[count];
            for (int i = 0; i < count; i++) {
                after[i] = load[i] + out[i] + 1;
            }
            int[] least = Order.ascending(after);
            int taken = Math.min(count, Math.max(1, over / 2));
            for (int i = 0; i < taken; i++) {
                out[least[i]]++;
            }
            over -= taken;
        }
        return out;
    }

    private void pourAll(int[] counts) {
        int[] order = Order.ascending(readers(allowed, kinds));
        for (boolean again : new boolean[] {false, true}) {
            for (int kind : order) {
                int[] who = Order.where(members, member(kind));
                if (who.length == 0 || counts[kind] == 0) {
                    continue;
                }
                int[] loads = new int[who.length];
                for (int i = 0; i < who.length; i++) {
                    load[who[i]] -= again ? given[who[i]][kind] : 0;
                    loads[i] = load[who[i]];
                }
                int[] poured = pour(counts[kind], loads);
                for (int i = 0; i < who.length; i++) {
                    given[who[i]][kind] = poured[i];
                    load[who[i]] += poured[i];
                }
            }
        }
    }

    private IntPredicate member(int kind) {
        return m -> allowed[m][kind];
    }

    /** How many members may read each kind. */
    static int[] readers(boolean[][] allowed, int kinds) {
        int[] out = new int[kinds];
        for (boolean[] mine : allowed) {
            for (int k = 0; k < kinds; k++) {
                out[k] += mine[k] ? 1 : 0;
            }
        }
        return out;
    }

    /** Follows improving chains until there is none. */
    private void exchange() {
        boolean[] alive = new boolean[members];
        for (int m = 0; m < members; m++) {
            for (boolean some : allowed[m]) {
                alive[m] |= some;
            }
        }
        int[] byKind = new int[members];
        int[] byMember = new int[kinds];
        while (true) {
            int start = -1;
            for (int m = 0; m < members; m++) {
                if (alive[m] && (start < 0 || load[m] > load[start])) {
                    start = m;
                }
            }
            if (start < 0) {
                return;
            }
            boolean[] reached = reach(start, alive, byKind, byMember);
            int end = -1;
            for (int m = 0; m < members; m++) {
                if (reached[m] && m != start && (end < 0 || load[m] < load[end])) {
                    end = m;
                }
            }
            if (end >= 0 && load[end] + 1 < load[start]) {
                handOver(start, end, byKind, byMember);
                load[start]--;
                load[end]++;
            } else {
                for (int m = 0; m < members; m++) {
                    alive[m] &= !reached[m];
                }
            }
        }
    }

    private boolean[] reach(int start, boolean[] alive, int[] byKind, int[] byMember) {
        Arrays.fill(byKind, -1);
        Arrays.fill(byMember, -1);
        boolean[] reached = new boolean[members];
        reached[start] = true;
        int[] front = {start};
        while (front.length > 0) {
            boolean[] fresh = new boolean[kinds];
            for (int k = 0; k < kinds; k++) {
                for (int i = 0; byMember[k] < 0 && i < front.length; i++) {
                    if (given[front[i]][k] > 0) {
                        byMember[k] = front[i];
                        fresh[k] = true;
                    }
                }
            }
            int[] near = Order.where(kinds, k -> fresh[k]);
            boolean[] next = new boolean[members];
            for (int m = 0; m < members; m++) {
                for (int i = 0; !next[m] && alive[m] && !reached[m] && i < near.length; i++) {
                    if (allowed[m][near[i]]) {
                        next[m] = true;
                        byKind[m] = near[i];
                    }
                }
            }
            front = Order.where(members, m -> next[m]);
            for (int m : front) {
                reached[m] = true;
            }
        }
        return reached;
    }

    private void handOver(int start, int end, int[] byKind, int[] byMember) {
        for (int at = end; at != start; at = byMember[byKind[at]]) {
            given[at][byKind[at]]++;
            given[byMember[byKind[at]]][byKind[at]]--;
        }
    }
}
