package azimuth.planner;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/**
 * The partitions of each capped topic on each reader during the search, and how far loads are outside their bounds.
 *
 * <p>A piece is the part of one topic that one member has. Topics without a cap that the same members read share the
 * row of the first of them; their other rows are empty.
 */
final class SearchState {
    /** A hand-over of partitions of one topic; a move is a list of those that are done together. */
    record HandOver(int topic, int giver, int taker, int count) {}

    /** Bounds of the loads. */
    final Band band;
    /** Most distinct members of each topic. */
    final int[] caps;
    /** Which members subscribe to which topic, by topic, then member. */
    final boolean[][] may;
    /** Valid claims, by topic, then member. */
    final int[][] owned;
    /** Partitions of each capped topic by their set of racks. */
    final int[][] sets;
    /** Which members are off which set of racks, by set, then member. */
    final boolean[][] off;
    final boolean anyOff;
    final boolean anyOwned;
    final int topics;
    final int members;

    /** Partitions of each topic on each member. */
    int[][] pieces;
    /** Sums of the pieces. */
    int[] load;
    /** Number of members that read each topic. */
    int[] readers;
    /** Which members read each topic: where topics have few readers, this is quicker to go through than their pieces. */
    BitSet[] readersOf;
    /** Number of topics of which each member has less than it claims: kept here, because each pool of a search asks. */
    int[] missing;
    /** Number of topics of which each member has more or less than it claims. */
    int[] touched;
    /** Valid claims that other members hold now. */
    long moved;
    /** Work done so far, in priced hand-overs; the search stops at a limit that is the same on every machine. */
    long work;

    SearchState(Band band, int[] caps, boolean[][] may, int[][] owned, int[][] sets, boolean[][] off, int[][] pieces) {
        this.band = band;
        this.caps = caps;
        this.may = may;
        this.owned = owned;
        this.sets = sets;
        this.off = off;
        topics = caps.length;
        members = band.low().length;
        anyOff = Arrays.stream(off).anyMatch(set -> contains(set));
        anyOwned = Arrays.stream(owned).anyMatch(row -> Arrays.stream(row).anyMatch(count -> count > 0));
        reset(pieces);
    }

    private static boolean contains(boolean[] set) {
        for (boolean one : set) {
            if (one) {
                return true;
            }
        }
        return false;
    }

    /** Replaces all pieces. */
    void reset(int[][] all) {
        pieces = all;
        load = new int[members];
        readers = new int[topics];
        readersOf = new BitSet[topics];
        missing = new int[members];
        touched = new int[members];
        moved = 0;
        for (int t = 0; t < topics; t++) {
            readersOf[t] = new BitSet(members);
            for (int m = 0; m < members; m++) {
                load[m] += pieces[t][m];
                readersOf[t].set(m, pieces[t][m] > 0);
                readers[t] += pieces[t][m] > 0 ? 1 : 0;
                missing[m] += pieces[t][m] < owned[t][m] ? 1 : 0;
                touched[m] += pieces[t][m] != owned[t][m] ? 1 : 0;
                moved += Math.max(owned[t][m] - pieces[t][m], 0);
            }
        }
    }

    int[][] copyOfPieces() {
        return Arrays.stream(pieces).map(int[]::clone).toArray(int[][]::new);
    }

    /** Sets the number of partitions that a member has of a topic. */
    void put(int topic, int member, int count) {
        int before = pieces[topic][member];
        int claimed = owned[topic][member];
        readers[topic] += (count > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
        readersOf[topic].set(member, count > 0);
        missing[member] += (count < claimed ? 1 : 0) - (before < claimed ? 1 : 0);
        touched[member] += (count != claimed ? 1 : 0) - (before != claimed ? 1 : 0);
        moved += Math.max(0, claimed - count) - Math.max(0, claimed - before);
        pieces[topic][member] = count;
        load[member] += count - before;
    }

    /** Gives partitions without an owner to a member. */
    void take(int topic, int member, int count) {
        put(topic, member, pieces[topic][member] + count);
    }

    /** Does all hand-overs of a move. */
    void apply(List<HandOver> move) {
        for (HandOver one : move) {
            take(one.topic, one.giver, -one.count);
            take(one.topic, one.taker, one.count);
        }
    }

    /** Undoes the moves, the last one first. */
    void undo(List<List<HandOver>> moves) {
        for (int i = moves.size() - 1; i >= 0; i--) {
            for (int j = moves.get(i).size() - 1; j >= 0; j--) {
                HandOver one = moves.get(i).get(j);
                take(one.topic, one.taker, -one.count);
                take(one.topic, one.giver, one.count);
            }
        }
    }

    /** How far a load is outside its bounds; negative below. */
    int outside(int member) {
        return Math.max(load[member] - band.high()[member], 0) - Math.max(band.low()[member] - load[member], 0);
    }

    /** How many members are outside their bounds. */
    int countOutside() {
        int count = 0;
        for (int m = 0; m < members; m++) {
            count += outside(m) != 0 ? 1 : 0;
        }
        return count;
    }

    /** The values to minimise: first that all loads are inside, then the loads from the highest, then moved claims. */
    Key key() {
        return new Key(countOutside() > 0, countOutside() > 0 ? highestFirst() : new int[0], moved);
    }

    /** Whether the loads are proven to be the fairest that the caps allow. */
    boolean isFairest() {
        int[] sizes = new int[topics];
        int[] most = new int[topics];
        for (int t = 0; t < topics; t++) {
            sizes[t] = Arrays.stream(pieces[t]).sum();
            int subscribers = 0;
            for (boolean one : may[t]) {
                subscribers += one ? 1 : 0;
            }
            most[t] = Math.min(Math.min(caps[t], sizes[t]), subscribers);
        }
        return FairestCappedLoads.are(load, sizes, most);
    }

    int[] highestFirst() {
        int[] sorted = load.clone();
        Arrays.sort(sorted);
        for (int i = 0, j = members - 1; i < j; i++, j--) {
            int one = sorted[i];
            sorted[i] = sorted[j];
            sorted[j] = one;
        }
        return sorted;
    }

    /** What a plan is worth; smaller is better. */
    record Key(boolean outside, int[] loads, long moved) implements Comparable<Key> {
        @Override
        public int compareTo(Key other) {
            int order = Boolean.compare(outside, other.outside);
            order = order != 0 ? order : Arrays.compare(loads, other.loads);
            return order != 0 ? order : Long.compare(moved, other.moved);
        }
    }
}
