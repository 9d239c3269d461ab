package azimuth.planner;

import java.math.BigInteger;
import java.util.Arrays;

/**
 * A lower bound of the claims that move if worker caps bind and all members read the same topics.
 *
 * <p>A member above its upper bound gives the surplus, a topic of one worker only as a whole; if topics have one worker,
 * bounds are rounded to sums of topics; a topic whose unowned partitions exceed the room of its readers displaces claims;
 * members below their lower bound need more partitions than the unowned ones; and owners in excess of the cap of
 * their topic keep nothing of it.
 */
final class FewestMoves {
    private FewestMoves() {}

    /**
     * Bounds the claims that move in any plan within the band and the caps.
     *
     * @param owned valid claims, by topic, then member
     * @param caps most distinct members of each topic
     */
    static long find(Group group, int[][] owned, int[] caps, Band band) {
        int members = group.members.length;
        int[] sizes = new int[caps.length];
        int[] claims = new int[members];
        for (int t = 0; t < caps.length; t++) {
            sizes[t] = group.size(t);
            for (int m = 0; m < members; m++) {
                claims[m] += owned[t][m];
            }
        }
        boolean some = Arrays.stream(caps).anyMatch(cap -> cap == 1);
        Band rounded = some ? inWholeTopics(band, sizes, caps) : band;
        int[] most = new int[members];
        for (int m = 0; m < members; m++) {
            boolean whole = some && claims[m] > rounded.high()[m];
            most[m] = whole ? mostKept(owned, m, caps, rounded.high()[m]) : Math.min(claims[m], rounded.high()[m]);
        }
        int[] kept = rounded.kept(most, Arrays.stream(sizes).sum());
        long all = sum(claims);
        long needed = all - sum(kept);
        long pushed = all - sum(most) + displaced(owned, sizes, caps, most, rounded.high());
        return Math.max(overCap(owned, caps), Math.max(needed, pushed));
    }

    private static long sum(int[] values) {
        return Arrays.stream(values).asLongStream().sum();
    }

    /** Claims of owners in excess of the caps, those with the smallest pieces. */
    private static long overCap(int[][] owned, int[] caps) {
        long out = 0;
        for (int t = 0; t < caps.length; t++) {
            int[] pieces = Arrays.stream(owned[t]).filter(piece -> piece > 0).sorted().toArray();
            for (int i = 0; i < pieces.length - (long) caps[t]; i++) {
                out += pieces[i];
            }
        }
        return out;
    }

    /**
     * Claims that members must lose to receive the unowned partitions.
     *
     * <p>What the readers of a topic, owners that stay and others up to the cap, receive beyond the sum of their room
     * displaces claims. For each number of owners that do not stay, the best are those with the smallest sum of claims,
     * which become unowned, and room. A member that receives several topics loses at least the sum of what each of them
     * alone displaces there.
     */
    private static long displaced(int[][] owned, int[] sizes, int[] caps, int[] most, int[] high) {
        int members = most.length;
        int[] room = new int[members];
        for (int m = 0; m < members; m++) {
            room[m] = Math.max(high[m] - most[m], 0);
        }
        int[] sorted = room.clone();
        Arrays.sort(sorted);
        long[] reach = new long[members + 1];
        for (int m = 0; m < members; m++) {
            reach[m + 1] = reach[m] + sorted[members - 1 - m];
        }
        long out = 0;
        for (int t = 0; t < caps.length; t++) {
            out += displaced(owned[t], sizes[t], Math.min(caps[t], members), room, reach);
        }
        return out;
    }

    private static long displaced(int[] owned, int size, int cap, int[] room, long[] reach) {
        int[] owners = Order.where(owned.length, m -> owned[m] > 0);
        int unowned = size - Arrays.stream(owners).map(m -> owned[m]).sum();
        if (unowned <= 0 && owners.length <= cap) {
            return 0;
        }
        int[] gone = Arrays.stream(owners).map(m -> owned[m] + room[m]).sorted().toArray();
        long received = unowned - Arrays.stream(owners).mapToLong(m -> room[m]).sum();
        long least = Long.MAX_VALUE;
        for (int lost = 0; lost <= owners.length; lost++) {
            if (lost >= owners.length - cap) {
                least = Math.min(least, received - reach[cap - owners.length + lost]);
            }
            received += lost < owners.length ? gone[lost] : 0;
        }
        return Math.max(0, least);
    }

    /** Rounds the bounds to loads that are the sum of some set of topics. */
    private static Band inWholeTopics(Band band, int[] sizes, int[] caps) {
        BigInteger sums = sums(sizes, caps, Arrays.stream(sizes).sum());
        int[] low = band.low().clone();
        int[] high = band.high().clone();
        for (int m = 0; m < low.length; m++) {
            int above = next(sums, low[m]);
            int below = last(sums, high[m]);
            if (above <= below) { // else no plan is within the bounds
                low[m] = above;
                high[m] = below;
            }
        }
        return new Band(low, high);
    }

    /** The most claims that a member can keep within its bound. */
    private static int mostKept(int[][] owned, int member, int[] caps, int high) {
        int[] claims = Arrays.stream(owned).mapToInt(row -> row[member]).toArray();
        return last(sums(claims, caps, Arrays.stream(claims).sum()), high);
    }

    /** Possible sums, as the bits of a number: of topics of one worker whole, of others any part. */
    private static BigInteger sums(int[] sizes, int[] caps, int top) {
        int any = 0;
        for (int t = 0; t < sizes.length; t++) {
            any += caps[t] == 1 ? 0 : sizes[t];
        }
        BigInteger mask = ones(top + 1);
        BigInteger sums = ones(any + 1);
        for (int t = 0; t < sizes.length; t++) {
            if (caps[t] == 1 && sizes[t] > 0) {
                sums = sums.or(sums.shiftLeft(sizes[t])).and(mask);
            }
        }
        return sums.and(mask);
    }

    private static BigInteger ones(int count) {
        return BigInteger.ONE.shiftLeft(count).subtract(BigInteger.ONE);
    }

    private static int next(BigInteger sums, int least) {
        int above = sums.shiftRight(least).getLowestSetBit();
        return above < 0 ? least : least + above;
    }

    private static int last(BigInteger sums, int most) {
        return sums.and(ones(most + 1)).bitLength() - 1;
    }
}
