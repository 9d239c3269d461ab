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
     * @param kept how many of each kind each member keeps, by member, then kind
     * @param kindOf kind of each partition; null where all are of one
     */
    static void release(Group group, int[] owner, int[][] kept, int[] kindOf) {
        int members = group.members.length;
        int[][] surplus = new int[members][];
        for (int m = 0; m < members; m++) {
            surplus[m] = new int[kept[m].length];
            for (int k = 0; k < kept[m].length; k++) {
                surplus[m][k] = -kept[m][k];
            }
        }
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] >= 0) {
                surplus[owner[p]][kindOf == null ? 0 : kindOf[p]]++;
            }
        }
        int[] topicBefore = new int[members];
        int[] held = new int[members];
        Arrays.fill(topicBefore, -1);
        List<Claim> found = new ArrayList<>(); // of few: most members keep all of their claims
        for (int p = 0; p < owner.length; p++) {
            int m = owner[p];
            int kind = kindOf == null ? 0 : kindOf[p];
            if (m < 0 || surplus[m][kind] <= 0) {
                continue;
            }
            int topic = group.topicOf[p];
            held[m] = topicBefore[m] == topic ? held[m] + 1 : 0;
            topicBefore[m] = topic;
            found.add(new Claim(p, m, kind, held[m], Hash.mix(group.hashes[m] ^ group.keys[topic])));
        }
        Collections.sort(found);
        for (Claim claim : found) {
            if (surplus[claim.member][claim.kind]-- > 0) {
                owner[claim.partition] = Group.NOBODY;
            }
        }
    }

    /** A claim that may go; of one member and kind the first in order goes first. */
    private record Claim(int partition, int member, int kind, int nth, long rank) implements Comparable<Claim> {
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
