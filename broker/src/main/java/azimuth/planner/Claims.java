package azimuth.planner;

import java.util.Arrays;
import java.util.Collection;

/** Reads what the members of a group claim: who owns which partition. */
final class Claims<T> {
    /** Several members claim it, none with a newer generation than the others. */
    private static final int VOID = -2;

    private final int[] first;
    private final int[] owner;
    /** How many claims each member has, valid or not; in the end those that are not. */
    private final int[] invalid;
    private final int[] generations;
    private final int[] newest;

    /** Whether a member may read a topic. */
    interface MayRead {
        boolean test(int member, int topic);
    }

    private Claims(Source<T> source, String[] members, int[] first, int[] owner) {
        this.first = first;
        this.owner = owner;
        invalid = new int[members.length];
        generations = generations(source, members);
        newest = generations == null ? null : new int[owner.length];
        Arrays.fill(owner, Group.NOBODY);
    }

    /**
     * Reads the claims of all members.
     *
     * @param first number of the first partition of each topic, and at the end how many there are
     * @param numbers of the topics
     * @param owner takes the member with a valid claim on each partition, or {@link Group#NOBODY}
     * @return of each member, how many of its claims are not valid
     */
    static <T> int[] read(
            Source<T> source, String[] members, int[] first, TopicNumbers numbers, int[] owner, MayRead mayRead) {
        Claims<T> claims = new Claims<>(source, members, first, owner);
        for (int m = 0; m < members.length; m++) {
            int member = m;
            source.claims(members[m]).forEach((topic, partitions) -> {
                claims.invalid[member] += partitions == null ? 1 : partitions.size();
                int number = numbers.of(topic);
                if (number >= 0 && partitions != null) {
                    claims.claim(member, number, partitions);
                }
            });
        }
        claims.dropInvalid(mayRead);
        return claims.invalid;
    }

    /** Generations of the members' claims (KIP-792); null where all are of one. */
    private static int[] generations(Source<?> source, String[] members) {
        int[] out = new int[members.length];
        boolean differ = false;
        for (int m = 0; m < out.length; m++) {
            out[m] = Math.max(source.generation(members[m]), -1);
            differ |= out[m] != out[0];
        }
        return differ ? out : null;
    }

    private void claim(int member, int topic, Collection<Integer> partitions) {
        int size = first[topic + 1] - first[topic];
        for (Integer partition : partitions) {
            if (partition == null || partition < 0 || partition >= size) {
                continue;
            }
            int at = first[topic] + partition;
            if (owner[at] == Group.NOBODY || newest != null && generations[member] > newest[at]) {
                owner[at] = member;
            } else if (owner[at] != member && (newest == null || generations[member] == newest[at])) {
                owner[at] = VOID;
            }
            if (newest != null) {
                newest[at] = owner[at] == member ? generations[member] : newest[at];
            }
        }
    }

    private void dropInvalid(MayRead mayRead) {
        for (int topic = 0; topic < first.length - 1; topic++) {
            for (int p = first[topic]; p < first[topic + 1]; p++) {
                int m = owner[p];
                if (m == VOID || m >= 0 && !mayRead.test(m, topic)) {
                    owner[p] = Group.NOBODY;
                } else if (m >= 0) {
                    invalid[m]--;
                }
            }
        }
    }
}
