package azimuth.planner;

import java.util.Arrays;

/**
 * Members that are below their bounds, in no order.
 *
 * <p>Where loads are kept even, about half of the members are at their bound at any time: those need no rank.
 */
final class OpenMembers {
    /** The open members come first in this array. */
    final int[] members;
    /** What ranks each of them, in the same order. */
    final long[] traits;
    /** How many are open. */
    int count;

    private final long[] traitOf;
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
