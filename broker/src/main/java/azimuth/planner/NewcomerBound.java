package azimuth.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A lower bound of the claims that move to one member that needs many of them, such as one that joins.
 *
 * <p>A topic that has as many readers as its cap allows is open to one more only if an owner leaves it. That owner loses
 * its whole piece, often more than its load can fall, so it takes other claims in exchange. The newcomer chooses the topics
 * that give what it needs at the smallest excess, by dynamic programming. Python's {@code newcomer_bound} says why this is
 * a bound.
 */
final class NewcomerBound {
    private static final int CHOICES = 200; // of owners that leave a topic; if there are more, the best is assumed

    private final SearchState state;
    private final int[] surplus;
    private final int newcomer;

    private NewcomerBound(SearchState state) {
        this.state = state;
        surplus = Arrays.stream(state.band.low()).map(low -> -low).toArray();
        for (int[] row : state.owned) {
            for (int m = 0; m < row.length; m++) {
                surplus[m] += row[m];
            }
        }
        int least = 0;
        for (int m = 0; m < surplus.length; m++) {
            least = surplus[m] < surplus[least] ? m : least;
        }
        newcomer = least;
    }

    /** Bounds the claims that move in any plan within the bounds of the loads and the caps. */
    static long moves(SearchState state) {
        return new NewcomerBound(state).bound();
    }

    /** What an owner has of a topic, and how much of it the owner can lose without an excess. */
    private record Part(int piece, int spare) {}

    /** What decides the offers of a topic: its owners, the partitions that the newcomer does not own, the cap. */
    private record Owners(List<Part> parts, int left, int cap) {}

    /** An excess of the owners, and the partitions that the newcomer gets for it. */
    private record Offer(int cost, int count) {}

    private long bound() {
        int need = Math.max(-surplus[newcomer], 0);
        if (need == 0) {
            return 0;
        }
        // The lowest excess with which the newcomer gets each number of partitions, or more.
        int[] excess = new int[need + 1];
        Arrays.fill(excess, 1, need + 1, need);
        long unowned = 0;
        Map<Owners, Integer> topics = new HashMap<>();
        for (int t = 0; t < state.topics; t++) {
            unowned += Arrays.stream(state.pieces[t]).sum() - Arrays.stream(state.owned[t]).sum();
            topics.merge(owners(t), 1, Integer::sum);
        }
        for (Map.Entry<Owners, Integer> entry : topics.entrySet()) {
            List<Offer> offers = offers(entry.getKey());
            if (!offers.isEmpty()) {
                // More topics with these offers give no more than is needed.
                int fewest = offers.stream().mapToInt(Offer::count).min().getAsInt();
                for (int i = Math.min(entry.getValue(), (need + fewest - 1) / fewest); i > 0; i--) {
                    excess = with(offers, excess);
                }
            }
        }
        long least = need;
        for (int got = 0; got <= need; got++) {
            least = Math.min(least, excess[got] + need - got); // each partition beyond what the topics give is one more
        }
        long needs = Arrays.stream(surplus).map(more -> Math.max(-more, 0)).sum();
        return Math.max(0, needs - unowned + least);
    }

    private Owners owners(int topic) {
        List<Part> parts = new ArrayList<>();
        int size = 0;
        for (int m = 0; m < state.members; m++) {
            int piece = state.owned[topic][m];
            size += state.pieces[topic][m];
            if (piece > 0 && m != newcomer) {
                parts.add(new Part(piece, Math.min(Math.max(surplus[m], 0), piece)));
            }
        }
        parts.sort((one, two) -> one.piece != two.piece ? one.piece - two.piece : one.spare - two.spare);
        return new Owners(parts, size - state.owned[topic][newcomer], state.caps[topic]);
    }

    private static List<Offer> offers(Owners topic) {
        int[] excesses = topic.parts.stream().mapToInt(part -> part.piece - part.spare).sorted().toArray();
        int gone = (int) Math.max(0, excesses.length + 1L - topic.cap);
        if (choices(excesses.length, gone) > CHOICES) {
            int count = topic.left;
            return List.of(new Offer(Arrays.stream(excesses).limit(gone).sum(), count));
        }
        int without = topic.left - Arrays.stream(excesses).sum();
        List<Offer> out = new ArrayList<>();
        for (int cost : sums(excesses, gone).keySet()) {
            // An owner that leaves gives its whole piece, beyond what it can give without an excess.
            if (without > 0) {
                out.add(new Offer(cost, without + cost));
            }
        }
        return out;
    }

    /** The sums of every choice of `count` of the numbers. */
    private static TreeMap<Integer, Boolean> sums(int[] numbers, int count) {
        List<TreeMap<Integer, Boolean>> of = new ArrayList<>();
        for (int chosen = 0; chosen <= count; chosen++) {
            of.add(new TreeMap<>());
        }
        of.get(0).put(0, true);
        for (int number : numbers) {
            for (int chosen = count; chosen > 0; chosen--) {
                for (int sum : List.copyOf(of.get(chosen - 1).keySet())) {
                    of.get(chosen).put(sum + number, true);
                }
            }
        }
        return of.get(count);
    }

    /** The number of choices, or one above the limit. */
    private static long choices(int of, int count) {
        long out = 1;
        for (int i = 1; i <= Math.min(count, of - count); i++) {
            out = out * (of - i + 1) / i;
            if (out > CHOICES) {
                return CHOICES + 1L;
            }
        }
        return out;
    }

    private static int[] with(List<Offer> offers, int[] excess) {
        int[] best = excess.clone();
        for (Offer offer : offers) {
            for (int got = 0; got < best.length; got++) {
                best[got] = Math.min(best[got], excess[Math.max(got - offer.count, 0)] + offer.cost);
            }
        }
        return best;
    }
}
