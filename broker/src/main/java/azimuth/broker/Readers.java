package azimuth.broker;

import java.util.Arrays;
import java.util.BitSet;

/**
 * Chooses the readers of topics that only so many members may read: owners first, newcomers by rank.
 *
 * <p>Python's planner goes on from such a choice with a search; this does not, so its loads may be further apart. The
 * number of readers is a promise all the same.
 */
final class Readers {
    private final Group group;
    private final Fill.Ranking ranking;
    private final Band band;
    private final int[] load;
    private final int[][] pieces;

    private Readers(Group group, Fill.Ranking ranking, Band band) {
        this.group = group;
        this.ranking = ranking;
        this.band = band;
        load = new int[group.members.length];
        pieces = new int[group.topics.length][group.members.length];
        for (int p = 0; p < group.owner.length; p++) {
            if (group.owner[p] >= 0) {
                pieces[group.topicOf[p]][group.owner[p]]++;
            }
        }
    }

    /** Topics whose cap is below what may read them. */
    static boolean[] capped(Group group, Settings settings) {
        boolean[] out = new boolean[group.topics.length];
        for (int t = 0; t < out.length; t++) {
            out[t] = settings.workersOf(group.topics[t]) < Math.min(group.size(t), group.members.length);
        }
        return out;
    }

    /**
     * Members that may read each topic.
     *
     * @param capped topics to choose readers for; the largest pieces are seated first
     * @param giveWay whether owners above their bound give up topics, so that newcomers find some
     */
    static BitSet[] choose(
            Group group, Settings settings, boolean[] capped, Band band, Fill.Ranking ranking, boolean giveWay) {
        BitSet[] readers = Kinds.subscribers(group);
        Readers seats = new Readers(group, ranking, band);
        int[] chunk = new int[capped.length];
        for (int t = 0; t < capped.length; t++) {
            if (capped[t]) {
                seats.seatOwners(t, settings.workersOf(group.topics[t]));
                chunk[t] = -ceilDiv(group.size(t), settings.workersOf(group.topics[t]));
            } else {
                seats.count(t);
            }
        }
        int[] order = Order.ascending(chunk);
        for (int t : order) {
            if (capped[t] && giveWay) {
                seats.giveWay(t);
            }
        }
        for (int t : order) {
            if (capped[t]) {
                seats.seatNewcomers(t, settings.workersOf(group.topics[t]), readers[t]);
                readers[t].clear();
                for (int m = 0; m < seats.load.length; m++) {
                    readers[t].set(m, seats.pieces[t][m] > 0);
                }
            }
        }
        return readers;
    }

    private static int ceilDiv(int amount, int by) {
        return (int) (((long) amount + by - 1) / by);
    }

    /** Where owners are more than the cap, those with the largest pieces stay. */
    private void seatOwners(int topic, int cap) {
        int[] mine = pieces[topic];
        int[] order = Order.ascending(Arrays.stream(mine).map(piece -> -piece).toArray());
        for (int i = cap; i < order.length; i++) {
            mine[order[i]] = 0;
        }
        count(topic);
    }

    /** Owners above their bound give the topic up. */
    private void giveWay(int topic) {
        for (int m = 0; m < load.length; m++) {
            if (load[m] > band.high()[m]) {
                load[m] -= pieces[topic][m];
                pieces[topic][m] = 0;
            }
        }
    }

    private void count(int topic) {
        for (int m = 0; m < load.length; m++) {
            load[m] += pieces[topic][m];
        }
    }

    private void seatNewcomers(int topic, int workers, BitSet may) {
        int[] mine = pieces[topic];
        int left = group.size(topic) - Arrays.stream(mine).sum();
        int owners = (int) Arrays.stream(mine).filter(piece -> piece > 0).count();
        int cap = Math.min(workers, may.cardinality());
        if (left == 0 || cap == 0) {
            return;
        }
        int[] who = best(topic, may, cap, Math.max(owners, Math.min(cap, owners + left)));
        for (; left > 0; left--) {
            int least = who[0];
            for (int m : who) {
                least = isLessLoaded(m, least, mine) ? m : least;
            }
            mine[least]++;
            load[least]++;
        }
    }

    private boolean isLessLoaded(int one, int two, int[] mine) {
        boolean full = load[one] >= band.high()[one];
        if (full != load[two] >= band.high()[two]) {
            return !full;
        }
        return mine[one] != mine[two] ? mine[one] < mine[two] : load[one] < load[two];
    }

    /** Owners, then members with room for a whole piece, then those with the fewest partitions off rack, by rank. */
    private int[] best(int topic, BitSet may, int cap, int wanted) {
        int[] mine = pieces[topic];
        int piece = ceilDiv(group.size(topic), cap);
        long[] scores = new long[load.length];
        ranking.rank(topic, scores);
        int[] away = new int[load.length];
        for (int p = group.first[topic]; p < group.first[topic + 1]; p++) {
            for (int m = 0; m < away.length; m++) {
                away[m] += group.off[group.racksOf[p]][m] ? 1 : 0;
            }
        }
        return may.stream().boxed().sorted((one, two) -> {
            int order = Boolean.compare(mine[one] == 0, mine[two] == 0);
            boolean full = load[one] + piece > band.high()[one];
            boolean fullToo = load[two] + piece > band.high()[two];
            order = order != 0 ? order : Boolean.compare(full, fullToo);
            order = order != 0 || !full ? order : Integer.compare(load[one], load[two]);
            order = order != 0 ? order : Integer.compare(away[one], away[two]);
            return order != 0 ? order : Long.compareUnsigned(scores[two], scores[one]);
        }).limit(wanted).mapToInt(Integer::intValue).toArray();
    }
}
