package azimuth.planner;

import azimuth.planner.SearchState.HandOver;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/** Hand-overs between the readers of capped topics, one a row, from which one step of the search chooses. */
final class HandOvers {
    private static final int TRIES = 8; // fullest and emptiest members that a step considers
    private static final int FEW = 3; // the number of these that exchange pieces
    private static final int WIDE = 4; // fullest members of a step that finds many hand-overs

    int size;
    int[] topic = new int[64];
    int[] giver = new int[64];
    int[] taker = new int[64];
    int[] count = new int[64];
    /** The topic given in exchange; -1 for none. */
    int[] back = new int[64];
    int[] backCount = new int[64];

    private final SearchState state;

    private HandOvers(SearchState state) {
        this.state = state;
    }

    static HandOvers none(SearchState state) {
        return new HandOvers(state);
    }

    /** Members farthest above their bounds, and those farthest below. */
    record Extremes(int[] full, int[] empty) {}

    static Extremes extremes(SearchState state) {
        int[] outside = new int[state.members];
        for (int m = 0; m < outside.length; m++) {
            outside[m] = state.outside(m);
        }
        int[] order = Order.ascending(outside);
        return new Extremes(
                Arrays.stream(last(order, TRIES)).filter(m -> outside[m] > 0).toArray(),
                Arrays.stream(first(order, TRIES)).filter(m -> outside[m] < 0).toArray());
    }

    private static int[] first(int[] order, int most) {
        return Arrays.copyOf(order, Math.min(order.length, most));
    }

    /** The last of an order, the last one first. */
    private static int[] last(int[] order, int most) {
        int[] out = new int[Math.min(order.length, most)];
        for (int i = 0; i < out.length; i++) {
            out[i] = order[order.length - 1 - i];
        }
        return out;
    }

    /**
     * Pieces that the fullest members can give to every member below its lower bound.
     *
     * <p>If no member is below, every member with room can take; if none is above its upper bound, the most loaded give.
     */
    static HandOvers wide(SearchState state) {
        int[] room = new int[state.members];
        int[] surplus = new int[state.members];
        for (int m = 0; m < room.length; m++) {
            room[m] = state.band.high()[m] - state.load[m];
            surplus[m] = state.load[m] - state.band.low()[m];
        }
        int[] lacking = Order.where(room.length, m -> surplus[m] < 0);
        int[] over = Arrays.stream(Order.ascending(room)).filter(m -> room[m] < 0).toArray();
        int[] givers = over.length > 0 ? over : Order.ascending(Arrays.stream(surplus).map(one -> -one).toArray());
        HandOvers out = new HandOvers(state);
        out.addBetween(first(givers, WIDE), lacking.length > 0 ? lacking : Order.where(room.length, m -> room[m] > 0));
        return out;
    }

    /** Whole pieces that the members farthest above their bounds can exchange with those farthest below. */
    static HandOvers wideSwaps(SearchState state) {
        Extremes extremes = extremes(state);
        HandOvers out = new HandOvers(state);
        out.addExchanges(extremes.full, extremes.empty);
        return out;
    }

    /** Pieces that the fullest can give to any member, and that the emptiest can take from any. */
    static HandOvers gifts(SearchState state, Extremes extremes) {
        HandOvers out = new HandOvers(state);
        int[] all = Order.where(state.members, m -> true);
        out.addBetween(extremes.full, all);
        for (int taker : extremes.empty) {
            for (int t = 0; t < state.topics; t++) {
                BitSet readers = state.readersOf[t];
                for (int m = readers.nextSetBit(0); m >= 0 && state.may[t][taker]; m = readers.nextSetBit(m + 1)) {
                    if (m != taker) {
                        out.add(t, m, taker, state.pieces[t][m], -1, 0);
                    }
                }
            }
        }
        return out;
    }

    private void addBetween(int[] givers, int[] takers) {
        for (int t = 0; t < state.topics; t++) {
            for (int giver : givers) {
                int piece = state.pieces[t][giver];
                for (int i = 0; piece > 0 && i < takers.length; i++) {
                    if (state.may[t][takers[i]] && giver != takers[i]) {
                        add(t, giver, takers[i], piece, -1, 0);
                    }
                }
            }
        }
    }

    /** Whole pieces that the fullest can exchange with the least loaded, the emptiest with the most loaded. */
    static HandOvers swaps(SearchState state, Extremes extremes) {
        int[] order = Order.ascending(state.load);
        HandOvers out = new HandOvers(state);
        out.addExchanges(first(extremes.full, FEW), first(order, TRIES));
        out.addExchanges(last(order, TRIES), first(extremes.empty, FEW));
        return out;
    }

    private void addExchanges(int[] givers, int[] takers) {
        for (int t = 0; t < state.topics; t++) {
            for (int giver : givers) {
                if (state.pieces[t][giver] > 0) {
                    addExchanges(t, giver, takers);
                }
            }
        }
    }

    private void addExchanges(int mine, int from, int[] takers) {
        for (int theirs = 0; theirs < state.topics; theirs++) {
            if (theirs == mine || !state.may[theirs][from]) {
                continue;
            }
            for (int to : takers) {
                int other = state.pieces[theirs][to];
                if (other > 0 && to != from && state.may[mine][to]) {
                    add(mine, from, to, state.pieces[mine][from], theirs, other);
                }
            }
        }
    }

    private void add(int topic, int giver, int taker, int count, int back, int backCount) {
        if (size == this.topic.length) {
            int longer = 2 * size;
            this.topic = Arrays.copyOf(this.topic, longer);
            this.giver = Arrays.copyOf(this.giver, longer);
            this.taker = Arrays.copyOf(this.taker, longer);
            this.count = Arrays.copyOf(this.count, longer);
            this.back = Arrays.copyOf(this.back, longer);
            this.backCount = Arrays.copyOf(this.backCount, longer);
        }
        this.topic[size] = topic;
        this.giver[size] = giver;
        this.taker[size] = taker;
        this.count[size] = count;
        this.back[size] = back;
        this.backCount[size++] = backCount;
    }

    /** Leaves out the rows in which the member gives partitions of the topic. */
    HandOvers without(int kept, int member) {
        HandOvers out = new HandOvers(state);
        for (int i = 0; i < size; i++) {
            if (!(topic[i] == kept && giver[i] == member || back[i] == kept && taker[i] == member)) {
                out.add(topic[i], giver[i], taker[i], count[i], back[i], backCount[i]);
            }
        }
        return out;
    }

    /** The count of a row, at most what is wanted where the taker may have a part of the piece. */
    int limited(int row, int wanted) {
        boolean divisible = state.pieces[topic[row]][taker[row]] > 0 || state.readers[topic[row]] < state.caps[topic[row]];
        return divisible && back[row] < 0 ? Math.min(Math.max(wanted, 1), count[row]) : count[row];
    }

    /** How many more claims a row costs with this count. */
    long lost(int row, int given) {
        long out = missing(topic[row], giver[row], -given) + missing(topic[row], taker[row], given);
        if (back[row] >= 0) {
            out += missing(back[row], taker[row], -backCount[row]) + missing(back[row], giver[row], backCount[row]);
        }
        return out;
    }

    private int missing(int of, int member, int more) {
        int missing = state.owned[of][member] - state.pieces[of][member];
        return Math.max(missing - more, 0) - Math.max(missing, 0);
    }

    /** A row as a move. */
    List<HandOver> move(int row, int given) {
        HandOver there = new HandOver(topic[row], giver[row], taker[row], given);
        return back[row] < 0 ? List.of(there)
                : List.of(there, new HandOver(back[row], taker[row], giver[row], backCount[row]));
    }
}
