package azimuth.planner;

import azimuth.planner.SearchState.HandOver;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;

/**
 * Brings the last members into the bounds of their loads by chains of hand-overs, with few moved claims.
 *
 * <p>A chain leads from a member that can give a partition to one that lacks one, or has room; each of its hand-overs is
 * between two readers of one topic, or to a new reader if the cap allows one more. A topic that has as many readers as its
 * cap allows is open to a member only if a reader leaves and gives its whole piece. This reader may then lack partitions
 * itself. In each step the member that lacks most receives a partition by a chain, or a reader's whole piece, whichever
 * costs fewer further hand-overs for each partition that it gets in this way. When no member lacks partitions, those above
 * their bounds give theirs by chains. Every step is that of Python's planner, so the plans are the same.
 */
final class HandOverChains {
    private static final int FAR = 1 << 20;
    private static final int LONGEST = 4; // hand-overs of a chain
    private static final int STEPS = 100;
    /** Assumed least hand-overs to a member without a common topic: 2 is right before, 1 often after other hand-overs. */
    static final int[] DISTANCES = {2, 1};

    private final SearchState state;
    /** Readers of each topic, ascending. */
    private final int[][] held;

    private final int far;
    private int[] spare;
    private int[] distance;

    private HandOverChains(SearchState state, int far) {
        this.far = far;
        this.state = state;
        held = new int[state.topics][];
        for (int t = 0; t < held.length; t++) {
            held[t] = readers(t);
        }
    }

    /**
     * Brings loads into their bounds; the search ends early where no chain leads.
     *
     * @param far one of {@link #DISTANCES}
     */
    static void settle(SearchState state, int far) {
        HandOverChains chains = new HandOverChains(state, far);
        for (int step = 0; step < STEPS; step++) {
            int[] lacks = new int[state.members];
            int[] over = new int[state.members];
            int needy = 0;
            boolean anyOver = false;
            for (int m = 0; m < lacks.length; m++) {
                lacks[m] = state.band.low()[m] - state.load[m];
                over[m] = Math.max(state.load[m] - state.band.high()[m], 0);
                anyOver |= over[m] > 0;
                needy = lacks[m] > lacks[needy] ? m : needy;
            }
            if (lacks[needy] <= 0 && !anyOver) {
                return;
            }
            chains.spare = anyOver ? over : Arrays.stream(lacks).map(lack -> Math.max(-lack, 0)).toArray();
            chains.distance = chains.distances();
            List<HandOver> move = lacks[needy] > 0 ? chains.fill(needy) : chains.relieve();
            if (move.isEmpty()) {
                return;
            }
            state.apply(move);
            for (HandOver one : move) {
                chains.held[one.topic()] = chains.readers(one.topic());
            }
        }
    }

    private int[] readers(int topic) {
        return Order.where(state.members, m -> state.pieces[topic][m] > 0);
    }

    /** A chain to the member that lacks most, or the hand-over of a whole piece. */
    private List<HandOver> fill(int needy) {
        int length = FAR;
        for (int t = 0; t < state.topics; t++) {
            if (isNear(t, needy)) {
                for (int m : held[t]) {
                    length = Math.min(length, 1 + distance[m]);
                }
            }
        }
        Piece best = bestPiece(needy);
        if (length < FAR && (best == null || length - 1 <= best.ratio)) {
            return chain(needy, length);
        }
        return best == null
                ? List.of()
                : List.of(new HandOver(best.topic, best.reader, needy, state.pieces[best.topic][best.reader]));
    }

    /** A chain from a member above its bounds to the nearest one with room. */
    private List<HandOver> relieve() {
        int taker = -1;
        for (int m = 0; m < state.members; m++) {
            boolean hasRoom = state.load[m] < state.band.high()[m] && distance[m] < FAR;
            taker = hasRoom && (taker < 0 || distance[m] < distance[taker]) ? m : taker;
        }
        return taker < 0 ? List.of() : chain(taker, distance[taker]);
    }

    private boolean isOpen(int topic) {
        return state.readers[topic] < state.caps[topic];
    }

    /** Whether a member can get a part of a topic. */
    private boolean isNear(int topic, int member) {
        return state.pieces[topic][member] > 0 || isOpen(topic) && state.may[topic][member];
    }

    /** The fewest hand-overs to each member from one that can give. */
    private int[] distances() {
        int[] out = Arrays.stream(spare).map(count -> count > 0 ? 0 : FAR).toArray();
        for (int handOvers = 1; handOvers <= LONGEST; handOvers++) {
            boolean[] front = new boolean[out.length];
            for (int t = 0; t < state.topics; t++) {
                boolean reached = false;
                for (int m : held[t]) {
                    reached |= out[m] == handOvers - 1;
                }
                for (int m = 0; m < out.length && reached && isOpen(t); m++) {
                    front[m] |= state.may[t][m];
                }
                for (int i = 0; i < held[t].length && reached; i++) {
                    front[held[t][i]] = true;
                }
            }
            for (int m = 0; m < out.length; m++) {
                out[m] = front[m] && out[m] == FAR ? handOvers : out[m];
            }
        }
        return out;
    }

    /** A piece that a member could take, with the further hand-overs for each partition, and the partitions it gets. */
    private record Piece(int topic, int reader, double ratio, int gain) {}

    /** The piece that the member should take; null for none. */
    private Piece bestPiece(int needy) {
        int need = state.band.low()[needy] - state.load[needy];
        int room = state.band.high()[needy] - state.load[needy];
        int[] givers = new int[state.topics];
        int[] direct = new int[state.topics];
        for (int t = 0; t < state.topics; t++) {
            for (int m : held[t]) {
                givers[t] += spare[m] > 0 ? 1 : 0;
                direct[t] += Math.min(spare[m], state.pieces[t][m]);
            }
        }
        int[] near = new int[state.members]; // topics in which another reader can give
        for (int t = 0; t < state.topics; t++) {
            for (int m : held[t]) {
                near[m] += otherGives(givers[t], m) ? 1 : 0;
            }
        }
        Piece best = null;
        for (int t = 0; t < state.topics; t++) {
            if (isOpen(t) || !state.may[t][needy] || state.pieces[t][needy] > 0) {
                continue;
            }
            for (int m : held[t]) {
                int piece = state.pieces[t][m];
                if (piece > room) {
                    continue;
                }
                int low = state.band.low()[m];
                int lost = Math.max(low - state.load[m] + piece, 0) - Math.max(low - state.load[m], 0);
                boolean isNear = near[m] - (otherGives(givers[t], m) ? 1 : 0) > 0; // also in a topic that it keeps
                long further = (long) lost * (isNear ? 1 : Math.max(distance[m], far));
                if (further >= FAR) {
                    continue;
                }
                int gain = Math.min(piece + direct[t] - Math.min(spare[m], piece), need);
                double ratio = (double) further / gain;
                if (best == null || ratio < best.ratio || ratio == best.ratio && gain > best.gain) {
                    best = new Piece(t, m, ratio, gain);
                }
            }
        }
        return best;
    }

    private boolean otherGives(int givers, int member) {
        return givers - (spare[member] > 0 ? 1 : 0) > 0;
    }

    /** The first of the shortest chains to a member, each hand-over of one partition. */
    private List<HandOver> chain(int to, int length) {
        Deque<HandOver> out = new ArrayDeque<>();
        int taker = to;
        for (int left = length - 1; left >= 0; left--) {
            HandOver step = handOver(taker, left);
            out.addFirst(step);
            taker = step.giver();
        }
        return List.copyOf(out);
    }

    private HandOver handOver(int taker, int away) {
        for (int t = 0; t < state.topics; t++) {
            boolean isNear = isNear(t, taker);
            for (int m : held[t]) {
                if (isNear && distance[m] == away) {
                    return new HandOver(t, m, taker, 1);
                }
            }
        }
        throw new IllegalStateException("no chain of hand-overs leads to member " + taker);
    }
}
