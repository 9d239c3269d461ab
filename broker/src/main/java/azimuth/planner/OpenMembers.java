package azimuth.planner;

import java.util.Arrays;

/**
 * Members that are below their bounds, in no order.
 *
 * <p>Where loads are kept even, about half of the members are at their bound at any time: those need no rank.
 */
final class OpenMembers {
    /** One marked member in so many, and fewer, are rare. */
    private static final int RARE = 64;
    private static final int BLOCK = 4;

    /** The open members come first in this array. */
    final int[] members;
    /** What ranks each of them, in the same order. */
    final long[] traits;
    /** How many are open. */
    int count;

    private final long[] traitOf;
    private final long[] marks;
    private final int[] blocks;
    private final int[] limit;
    private final int[] placeOf;
    private int[] top;
    private int bound;

    /**
     * Takes what ranks each member.
     *
     * @param traitOf trait of each member
     */
    OpenMembers(long[] traitOf) {
        this.traitOf = traitOf;
        int count = traitOf.length;
        members = new int[count];
        traits = new long[count];
        marks = new long[count];
        blocks = new int[count / BLOCK + 1];
        limit = new int[count];
        placeOf = new int[count];
        Arrays.fill(placeOf, -1);
    }

    /** Makes the next refresh read all loads. */
    void forget() {
        top = null;
    }

    /**
     * Reads the loads, if bounds are others than before.
     *
     * @param top most partitions of each member
     * @param high the same; the smaller one counts
     * @param bound most partitions of any member
     */
    void refresh(int[] load, int[] top, int[] high, int bound) {
        if (top == this.top && bound == this.bound) {
            return;
        }
        this.top = top;
        this.bound = bound;
        Arrays.fill(placeOf, -1);
        count = 0;
        for (int m = 0; m < limit.length; m++) {
            limit[m] = Math.min(Math.min(top[m], high[m]), bound);
            if (load[m] < limit[m]) {
                placeOf[m] = count;
                traits[count] = traitOf[m];
                members[count++] = m;
            }
        }
    }

    /**
     * Finds the open members that score at least so much for a topic.
     *
     * @param about how many are expected
     * @param least unsigned; a score that is lower by 1 may count as well
     * @param out takes these members
     * @return how many there are
     */
    int reaching(Ranking ranking, int topic, int about, long least, int[] out) {
        if (least == 0) {
            System.arraycopy(members, 0, out, 0, count);
            return count;
        }
        ranking.mark(topic, traits, count, least, marks);
        return about * RARE <= count ? collectRare(out) : collect(out);
    }

    /** Collects marked members that are so rare that a branch is mostly foreseen. */
    private int collectRare(int[] out) {
        int found = 0;
        int i = 0;
        for (; i + 3 < count; i += 4) {
            if ((marks[i] | marks[i + 1] | marks[i + 2] | marks[i + 3]) != 0) {
                for (int at = i; at < i + 4; at++) {
                    out[found] = members[at];
                    found += (int) marks[at];
                }
            }
        }
        for (; i < count; i++) {
            out[found] = members[i];
            found += (int) marks[i];
        }
        return found;
    }

    /**
     * Collects the marked members: first the blocks that have one, then the members of these blocks.
     *
     * <p>Neither step has a branch, because chance decides, and most blocks have none.
     */
    private int collect(int[] out) {
        int some = 0;
        int whole = count & ~(BLOCK - 1);
        for (int i = 0; i < whole; i += BLOCK) {
            blocks[some] = i;
            some += (int) (marks[i] | marks[i + 1] | marks[i + 2] | marks[i + 3]);
        }
        int found = 0;
        for (int block = 0; block < some; block++) {
            int at = blocks[block];
            out[found] = members[at];
            found += (int) marks[at];
            out[found] = members[at + 1];
            found += (int) marks[at + 1];
            out[found] = members[at + 2];
            found += (int) marks[at + 2];
            out[found] = members[at + 3];
            found += (int) marks[at + 3];
        }
        for (int i = whole; i < count; i++) {
            out[found] = members[i];
            found += (int) marks[i];
        }
        return found;
    }

    /** Takes out a member that has reached its bound. */
    void gave(int member, int load) {
        int at = placeOf[member];
        if (at >= 0 && load >= limit[member]) {
            int last = members[--count];
            members[at] = last;
            traits[at] = traits[count];
            placeOf[last] = at;
            placeOf[member] = -1;
        }
    }
}
