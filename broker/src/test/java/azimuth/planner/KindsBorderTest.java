package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Where the exact plan of different subscriptions, racks and caps ends: docs/how-to/broker.md names the number. */
class KindsBorderTest {
    @Test
    void aMillionPairsOfAMemberAndAKindAreTheLastThatArePlannedByCounts() {
        assertEquals(1_000_000, Planner.CELLS);
        assertNotNull(kinds(1_000, 1_000));
        assertNull(kinds(1_000, 1_001));
    }

    /** Kinds of a group in which each topic has a cap, and so is a kind. */
    private static Kinds kinds(int members, int topics) {
        Group group = Group.read(new Everyone(names("m", members), Set.copyOf(names("t", topics))), 0);
        boolean[] capped = new boolean[topics];
        Arrays.fill(capped, true);
        return Kinds.read(group, Kinds.subscribers(group), capped, Planner.CELLS);
    }

    private static List<String> names(String first, int count) {
        return IntStream.range(0, count).mapToObj(i -> first + i).collect(Collectors.toList());
    }

    private record Everyone(Collection<String> members, Set<String> wanted) implements Source<String> {
        @Override
        public String identity(String member) {
            return member;
        }

        @Override
        public String rack(String member) {
            return null;
        }

        @Override
        public Set<String> topics(String member) {
            return wanted;
        }

        @Override
        public boolean alike() {
            return true;
        }

        @Override
        public Map<String, Set<Integer>> claims(String member) {
            return Map.of();
        }

        @Override
        public byte[] name(String topic) {
            return topic.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        }

        @Override
        public int partitions(String topic) {
            return 1;
        }

        @Override
        public Set<String> racks(String topic, int partition) {
            return Set.of();
        }
    }
}
