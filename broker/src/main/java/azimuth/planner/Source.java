package azimuth.planner;

import java.util.Collection;
import java.util.Map;
import java.util.Set;

/**
 * What a group and its cluster say, whichever protocol they speak; a {@link Group} reads each of these once.
 *
 * @param <T> what stands for a topic: its id in a broker, its name in a client
 */
public interface Source<T> {
    /** Ids of the members. */
    Collection<String> members();

    /** The name that ranks a member, which outlives its restarts if it has one that does. */
    String identity(String member);

    /** The rack of a member, or null. */
    String rack(String member);

    /** Topics that a member subscribes to. */
    Set<T> topics(String member);

    /** Whether all members are known to subscribe to the same topics. */
    boolean alike();

    /** Partitions that a member claims. */
    Map<T, ? extends Collection<Integer>> claims(String member);

    /** Generation of a member's claims: of two claims on a partition the newer one counts. */
    default int generation(String member) {
        return -1;
    }

    /** The text that ranks and sorts a topic, in UTF-8. */
    byte[] name(T topic);

    /** Partitions of a topic; below 1 if it does not exist. */
    int partitions(T topic);

    /** Racks of a partition's replicas; null or empty if they are unknown. */
    Set<String> racks(T topic, int partition);
}
