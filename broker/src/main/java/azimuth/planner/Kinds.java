package azimuth.planner;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Partitions told apart only by the members that may read them, and from which racks.
 *
 * @param of kind of each partition
 * @param counts partitions of each kind; 0 where no member may read it
 * @param allowed whether a member may read a kind, by member, then kind
 * @param away whether a member is off the racks of a kind, by member, then kind
 */
record Kinds(int[] of, int[] counts, boolean[][] allowed, boolean[][] away) {
    /**
     * Sorts the partitions into kinds.
     *
     * @param readers members that may read each topic
     * @param capped topics whose readers were chosen: each is a kind of its own
     * @param most cells of members x kinds
     * @return null where there would be more cells
     */
    static Kinds read(Group group, BitSet[] readers, boolean[] capped, long most) {
        int[] columns = columns(group, capped);
        int sets = group.off.length;
        long[] names = new long[group.partitions()];
        for (int p = 0; p < names.length; p++) {
            names[p] = (long) columns[group.topicOf[p]] * sets + group.racksOf[p];
        }
        long[] numbered = Arrays.stream(names).sorted().distinct().toArray();
        int members = group.members.length;
        if ((long) numbered.length * members > most) {
            return null;
        }
        int[] of = new int[names.length];
        int[] first = new int[numbered.length];
        int[] counts = new int[numbered.length];
        for (int p = names.length - 1; p >= 0; p--) {
            of[p] = Arrays.binarySearch(numbered, names[p]);
            first[of[p]] = p;
            counts[of[p]]++;
        }
        boolean[][] allowed = new boolean[members][numbered.length];
        boolean[][] away = new boolean[members][numbered.length];
        for (int k = 0; k < numbered.length; k++) {
            BitSet may = readers[group.topicOf[first[k]]];
            counts[k] = may.isEmpty() ? 0 : counts[k];
            for (int m = 0; m < members; m++) {
                allowed[m][k] = may.get(m);
                away[m][k] = group.off[group.racksOf[first[k]]][m];
            }
        }
        return new Kinds(of, counts, allowed, away);
    }

    /** Numbers the topics: those without a cap that the same members read have the same number. */
    private static int[] columns(Group group, boolean[] capped) {
        Map<BitSet, Integer> numbers = new HashMap<>();
        int[] columns = new int[capped.length];
        BitSet[] subscribers = subscribers(group);
        for (int t = 0; t < columns.length; t++) {
            columns[t] = numbers.computeIfAbsent(subscribers[t], column -> numbers.size());
        }
        for (int t = 0; t < columns.length; t++) {
            columns[t] = capped[t] ? numbers.size() + t : columns[t];
        }
        return columns;
    }

    /** Members that subscribed to each topic. */
    static BitSet[] subscribers(Group group) {
        BitSet[] out = new BitSet[group.topics()];
        for (int t = 0; t < out.length; t++) {
            out[t] = new BitSet(group.members.length);
        }
        for (int m = 0; m < group.members.length; m++) {
            int member = m;
            group.reads[m].stream().forEach(t -> out[t].set(member));
        }
        return out;
    }
}
