package azimuth.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** Picks which claims go where a member keeps fewer than it has. */
final class KeptClaims {
    private KeptClaims() {}

    /**
     * Releases the surplus: first claims of topics that the member holds most of, then those it ranks lowest for.
     *
     * @param owner valid claims that may stay; the released become {@link Group#NOBODY}
     * @param kept how many of each kind each member keeps: the kinds of the first member, then those of the next
     * @param kinds number of kinds
     * @param kindOf kind of each partition; null where all are of one
     */
    static void release(Group group, int[] owner, int[] kept, int kinds, int[] kindOf) {
        int members = group.members.length;
        int[] surplus = new int[kept.length];
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] >= 0) {
                surplus[owner[p] * kinds + (kindOf == null ? 0 : kindOf[p])]++;
            }
        }
        boolean some = false;
        for (int i = 0; i < kept.length; i++) {
            surplus[i] -= kept[i];
            some |= surplus[i] > 0;
        }
        if (!some) {
            return;
        }
        int[] topicBefore = new int[members];
        int[] held = new int[members];
        Arrays.fill(topicBefore, -1);
        List<Claim> found = new ArrayList<>(); // of few: most members keep all of their claims
        for (int p = 0; p < owner.length; p++) {
            int m = owner[p];
            int of = m * kinds + (kindOf == null ? 0 : kindOf[p]);
            if (m < 0 || surplus[of] <= 0) {
                continue;
            }
            int topic = group.topicOf[p];
            held[m] = topicBefore[m] == topic ? held[m] + 1 : 0;
            topicBefore[m] = topic;
            found.add(new Claim(p, of, held[m], Hash.mix(group.hashes[m] ^ group.keys[topic])));
        }
        Collections.sort(found);
        for (Claim claim : found) {
            if (surplus[claim.of]-- > 0) {
                owner[claim.partition] = Group.NOBODY;
            }
        }
    }

    /** A claim that may go; of one member and kind the first in order goes first. */
    private record Claim(int partition, int of, int nth, long rank) implements Comparable<Claim> {
        @Override
        public int compareTo(Claim other) {
            if (nth != other.nth) {
                return nth > other.nth ? -1 : 1;
            }
            int byRank = Long.compareUnsigned(rank, other.rank);
            return byRank == 0 ? Integer.compare(partition, other.partition) : byRank;
        }
    }
}
