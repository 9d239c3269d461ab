package azimuth.planner;

import azimuth.planner.HandOvers.Extremes;
import azimuth.planner.SearchState.HandOver;
import azimuth.planner.SearchState.Key;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Hand-overs between the readers of capped topics that bring the loads into their bounds.
 *
 * <p>A part of a piece can go to another reader, or to a new reader if the cap allows one more; otherwise a new reader
 * takes the whole piece. Each step takes the hand-over, or the exchange of two pieces, that brings the loads nearest to
 * their bounds with the fewest moved claims. {@link PoolSearch} finds what single steps miss. Every step and every limit
 * is that of Python's planner, so the plans are the same.
 */
final class LocalSearch {
    private static final long NEARER = 1L << 20;
    private static final long NEVER = 1L << 62;
    private static final int REPAIR_STEPS = 8; // after a piece was moved to another member
    private static final int MANY = 8; // members outside their bounds: with more, one step finds many hand-overs
    private static final int POOLS_HELP = 64; // members outside: with more, dividing the pieces of a few does not help
    private static final int CHAINS_HELP = 64; // partitions outside: with more, chains take longer than single hand-overs
    private static final long SMALL = 100_000; // topics x members: up to these, all ways into the bounds take little time
    private static final double NEAR = 1.3; // times the bound: as many moved claims are enough in larger groups
    private static final long CALL_WORK = 2_000;
    private static final int MIXED = 1009;
    private static final long BALANCE_WORK = 4_000_000;
    private static final long SEARCH_WORK = 2_000_000;

    private final SearchState state;

    private LocalSearch(SearchState state) {
        this.state = state;
    }

    /**
     * Brings loads into their bounds, then pieces back to their owners.
     *
     * @param least lower bound of the claims that move; the search ends when it is reached
     */
    static void bringIntoBand(SearchState state, long least) {
        LocalSearch search = new LocalSearch(state);
        long bound = least;
        if (!state.anyOff && (state.moved > least || state.countOutside() > 0)) {
            bound = Math.max(least, NewcomerBound.moves(state));
        }
        search.settle(bound);
        if (state.countOutside() > 0 && !state.isFairest()) {
            search.comeInside(bound);
        }
        if (state.countOutside() == 0) {
            new PoolSearch(state).run(bound, state.work + SEARCH_WORK);
        }
    }

    private record Tried(Key key, int[][] pieces) {}

    /** Brings loads into their bounds in one of three ways, the quickest first; keeps the best that was tried. */
    private void settle(long least) {
        int[][] before = state.pieces;
        List<Tried> tried = new ArrayList<>();
        double enough = least * ((long) state.topics * state.members > SMALL ? NEAR : 1);
        for (int far : chainsHelp() ? HandOverChains.DISTANCES : new int[0]) {
            state.reset(before);
            state.reset(state.copyOfPieces());
            HandOverChains.settle(state, far);
            if (state.countOutside() == 0 && state.moved <= enough) {
                return;
            }
            tried.add(new Tried(state.key(), state.pieces));
        }
        if (!tried.isEmpty()) {
            state.reset(before);
        }
        approach();
        balance(Integer.MAX_VALUE, -1, -1, true, state.work + BALANCE_WORK);
        if (chainsHelp()) {
            tried.add(new Tried(state.key(), state.copyOfPieces()));
            HandOverChains.settle(state, HandOverChains.DISTANCES[0]);
        }
        for (Tried one : tried) {
            if (one.key.compareTo(state.key()) < 0) {
                state.reset(one.pieces);
            }
        }
    }

    private boolean chainsHelp() {
        long outside = 0;
        for (int m = 0; m < state.members; m++) {
            outside += Math.abs(state.outside(m));
        }
        return outside > 0 && outside <= CHAINS_HELP && !state.anyOff && !state.isFairest();
    }

    /** Brings loads near to their bounds by many hand-overs or exchanges a step, while many members are outside them. */
    private void approach() {
        long end = state.work + BALANCE_WORK;
        while (state.countOutside() > MANY && state.work < end) {
            List<List<HandOver>> chosen = disjoint(HandOvers.wide(state));
            if (chosen.isEmpty()) {
                chosen = disjointExchanges(HandOvers.wideSwaps(state));
            }
            if (chosen.isEmpty()) {
                return;
            }
            chosen.forEach(state::apply);
        }
    }

    /** Chooses the cheapest hand-over to each taker, without those that conflict with a cheaper one. */
    private List<List<HandOver>> disjoint(HandOvers gifts) {
        List<List<HandOver>> out = new ArrayList<>();
        if (gifts.size == 0) {
            return out;
        }
        int[] counts = new int[gifts.size];
        int[] order = cheapestFirst(gifts, counts);
        int[] left = new int[state.members];
        for (int m = 0; m < left.length; m++) {
            int over = state.load[m] - state.band.high()[m];
            left[m] = over > 0 ? over : state.load[m] - state.band.low()[m];
        }
        boolean[] took = new boolean[state.members];
        boolean[] gave = new boolean[state.members];
        Set<Integer> topics = new HashSet<>();
        for (int i : order) {
            int giver = gifts.giver[i];
            if (took[gifts.taker[i]]) {
                continue;
            }
            took[gifts.taker[i]] = true;
            if (!topics.contains(gifts.topic[i]) && (!gave[giver] || counts[i] <= left[giver])) {
                out.add(gifts.move(i, counts[i]));
                topics.add(gifts.topic[i]);
                gave[giver] = true;
                left[giver] -= counts[i];
            }
        }
        return out;
    }

    /** Chooses the cheapest exchanges of which no two have a member or a topic in common. */
    private List<List<HandOver>> disjointExchanges(HandOvers swaps) {
        List<List<HandOver>> out = new ArrayList<>();
        if (swaps.size == 0) {
            return out;
        }
        int[] counts = new int[swaps.size];
        boolean[] member = new boolean[state.members];
        boolean[] topic = new boolean[state.topics];
        for (int i : cheapestFirst(swaps, counts)) {
            int giver = swaps.giver[i];
            int taker = swaps.taker[i];
            int there = swaps.topic[i];
            int back = swaps.back[i];
            if (!member[giver] && !member[taker] && !topic[there] && !topic[back]) {
                out.add(swaps.move(i, counts[i]));
                member[giver] = true;
                member[taker] = true;
                topic[there] = true;
                topic[back] = true;
            }
        }
        return out;
    }

    /** Prices moves, and limits their counts; the numbers of those that bring loads nearer, by price. */
    private int[] cheapestFirst(HandOvers moves, int[] counts) {
        long[] prices = priced(moves, counts);
        // Among equal prices, each taker starts with a different piece, because otherwise all would choose the same one.
        return Arrays.stream(Order.where(moves.size, i -> prices[i] < NEVER)).boxed().sorted((one, two) -> {
            int byPrice = Long.compare(prices[one], prices[two]);
            return byPrice != 0 ? byPrice : Integer.compare(mixed(moves, one), mixed(moves, two));
        }).mapToInt(Integer::intValue).toArray();
    }

    private static int mixed(HandOvers moves, int i) {
        return (int) ((moves.topic[i] * 31L + moves.giver[i] * 17L + moves.taker[i] * 7L) % MIXED);
    }

    // -- loads within their bounds ------------------------------------------------------------------------------------

    /** Searches for loads within the bounds, which may not exist; then for more even loads. */
    private void comeInside(long least) {
        if (state.countOutside() <= POOLS_HELP) {
            Key before = state.key();
            int[][] pieces = state.copyOfPieces();
            new PoolSearch(state).run(least, state.work + SEARCH_WORK / 3);
            if (state.key().compareTo(before) > 0) {
                state.reset(pieces);
            }
        }
        Trials trials = new Trials(state.work + SEARCH_WORK / 3);
        do {
            trials.better = false;
        } while (tryReturns(trials) && tryOtherReaders(trials) && trials.better);
    }

    /** What a round of trials found, and when they end. */
    private final class Trials {
        private final long end;
        private boolean better;

        private Trials(long end) {
            this.end = end;
        }

        /** Tries a hand-over; false if the search is over. */
        private boolean next(int topic, int giver, int taker, int count) {
            if (state.work >= end || state.countOutside() == 0) {
                return false;
            }
            better |= attempt(new HandOver(topic, giver, taker, count));
            return true;
        }
    }

    /** Does a hand-over and repairs the loads; undoes both unless the plan is better. Says whether it stays. */
    private boolean attempt(HandOver hand) {
        Key before = state.key();
        for (boolean swaps : new boolean[] {false, true}) {
            List<List<HandOver>> done = new ArrayList<>();
            done.add(List.of(hand));
            state.apply(done.get(0));
            done.addAll(balance(REPAIR_STEPS, hand.topic(), hand.taker(), swaps, Long.MAX_VALUE));
            if (state.key().compareTo(before) < 0) {
                return true;
            }
            state.undo(done);
        }
        return false;
    }

    /** Tries to return missing partitions to their owners, largest first; each fits the state at that time. */
    private boolean tryReturns(Trials trials) {
        List<int[]> missing = new ArrayList<>();
        for (int t = 0; t < state.topics; t++) {
            for (int m = 0; m < state.members; m++) {
                if (state.pieces[t][m] < state.owned[t][m]) {
                    missing.add(new int[] {t, m, state.owned[t][m] - state.pieces[t][m]});
                }
            }
        }
        missing.sort((one, two) -> Integer.compare(two[2], one[2]));
        for (int[] one : missing) {
            if (!tryReturns(trials, one[0], one[1])) {
                return false;
            }
        }
        return true;
    }

    private boolean tryReturns(Trials trials, int topic, int owner) {
        int[] holders = Order.where(state.members, m -> state.pieces[topic][m] > 0);
        for (int holder : holders) {
            int[] pieces = state.pieces[topic];
            int lacks = state.owned[topic][owner] - pieces[owner];
            int surplus = pieces[holder] - state.owned[topic][holder];
            boolean divisible = pieces[owner] > 0 || state.readers[topic] < state.caps[topic];
            if (holder == owner || lacks <= 0 || pieces[holder] == 0 || divisible && surplus <= 0) {
                continue;
            }
            if (!trials.next(topic, holder, owner, divisible ? Math.min(lacks, surplus) : pieces[holder])) {
                return false;
            }
        }
        return true;
    }

    /** Tries whole pieces of capped topics on other members. */
    private boolean tryOtherReaders(Trials trials) {
        List<int[]> held = new ArrayList<>();
        for (int t = 0; t < state.topics; t++) {
            for (int m = 0; m < state.members && state.caps[t] < state.members; m++) {
                if (state.pieces[t][m] > 0) {
                    held.add(new int[] {t, m});
                }
            }
        }
        for (int[] one : held) {
            int topic = one[0];
            int reader = one[1];
            for (int other = 0; other < state.members; other++) {
                int count = state.pieces[topic][reader];
                if (state.may[topic][other] && other != reader && count > 0
                        && !trials.next(topic, reader, other, count)) {
                    return false;
                }
            }
        }
        return true;
    }

    // -- one step -----------------------------------------------------------------------------------------------------

    /** Moves towards the bounds; if no move leads there, relieves the fullest member. Returns the moves. */
    private List<List<HandOver>> balance(int most, int keptTopic, int keeper, boolean swaps, long end) {
        List<List<HandOver>> done = new ArrayList<>();
        while (done.size() < most && state.work < end && state.countOutside() > 0) {
            List<HandOver> move = best(keptTopic, keeper, swaps);
            if (move == null) {
                break;
            }
            state.apply(move);
            done.add(move);
        }
        return done;
    }

    private record Priced(long price, List<HandOver> move) {}

    private List<HandOver> best(int keptTopic, int keeper, boolean swaps) {
        Extremes extremes = HandOvers.extremes(state);
        HandOvers gifts = HandOvers.gifts(state, extremes).without(keptTopic, keeper);
        Priced best = nearest(gifts);
        if (best != null && (best.price < 0 || !swaps)) { // a negative price: each moved claim brings a load nearer
            return best.move;
        }
        HandOvers exchanges =
                swaps ? HandOvers.swaps(state, extremes).without(keptTopic, keeper) : HandOvers.none(state);
        Priced exchange = nearest(exchanges);
        if (best == null || exchange != null && exchange.price < best.price) {
            best = exchange;
        }
        return best != null ? best.move : lowest(gifts, exchanges);
    }

    /** The move that brings loads nearest to their bounds with the fewest claims, and its price; null for none. */
    private Priced nearest(HandOvers moves) {
        if (moves.size == 0) {
            return null;
        }
        int[] counts = new int[moves.size];
        long[] prices = priced(moves, counts);
        int best = 0;
        for (int i = 1; i < moves.size; i++) {
            if (prices[i] < prices[best]
                    || prices[i] == prices[best] && state.load[moves.taker[i]] < state.load[moves.taker[best]]) {
                best = i;
            }
        }
        return prices[best] == NEVER ? null : new Priced(prices[best], moves.move(best, counts[best]));
    }

    /** Limits each hand-over to the needed count, and prices it; NEVER if it brings no load nearer. */
    private long[] priced(HandOvers moves, int[] counts) {
        state.work += CALL_WORK + moves.size;
        long[] prices = new long[moves.size];
        int[] low = state.band.low();
        int[] high = state.band.high();
        for (int i = 0; i < prices.length; i++) {
            int giver = moves.giver[i];
            int taker = moves.taker[i];
            int gives = state.load[giver];
            int takes = state.load[taker];
            int over = Math.max(gives - high[giver], 0);
            int under = Math.max(low[taker] - takes, 0);
            int surplus = Math.max(gives - low[giver], 0);
            int room = Math.max(high[taker] - takes, 0);
            int both = Math.min(over, under > 0 ? under : room);
            counts[i] = moves.limited(i, over > 0 ? both : Math.min(under, surplus));
            int net = counts[i] - moves.backCount[i];
            int after = distance(gives - net, low[giver], high[giver]) + distance(takes + net, low[taker], high[taker]);
            long nearer = Math.abs(state.outside(giver)) + Math.abs(state.outside(taker)) - after;
            prices[i] = nearer > 0 ? (2 * moves.lost(i, counts[i]) - nearer) * NEARER - nearer : NEVER;
        }
        return prices;
    }

    private static int distance(int load, int low, int high) {
        return Math.max(load - high, 0) + Math.max(low - load, 0);
    }

    /** The move that lowers the higher of two loads most; used if the bounds cannot be reached. */
    private List<HandOver> lowest(HandOvers gifts, HandOvers exchanges) {
        long bestGain = 0;
        long bestPrice = 0;
        List<HandOver> best = null;
        for (HandOvers moves : List.of(gifts, exchanges)) {
            int chosen = -1;
            long gain = 0;
            long price = 0;
            int given = 0;
            for (int i = 0; i < moves.size; i++) {
                int gives = state.load[moves.giver[i]];
                int takes = state.load[moves.taker[i]];
                int count = moves.limited(i, Math.max(Math.floorDiv(gives - takes, 2), 1));
                int net = count - moves.backCount[i];
                long gained = Math.max(gives, takes) - Math.max(gives - net, takes + net);
                long cost = moves.lost(i, count);
                if (chosen < 0 || gained > gain || gained == gain && cost < price) {
                    chosen = i;
                    gain = gained;
                    price = cost;
                    given = count;
                }
            }
            if (chosen >= 0 && gain > 0 && (best == null || gain > bestGain || gain == bestGain && price < bestPrice)) {
                bestGain = gain;
                bestPrice = price;
                best = moves.move(chosen, given);
            }
        }
        return best;
    }
}
