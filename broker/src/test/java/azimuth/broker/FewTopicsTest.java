package azimuth.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.junit.jupiter.api.Test;

/** What the broker keeps of a member with few topics: a map that is read like any other and cannot be changed. */
class FewTopicsTest {
    @Test
    void itIsEqualToAHashMapOfTheSamePartitions() {
        for (int count = 0; count <= FewTopics.MOST; count++) {
            Map<Uuid, Set<Integer>> plain = new HashMap<>();
            for (int t = 0; t < count; t++) {
                plain.put(new Uuid(1, t), Set.of(t, t + 1));
            }
            Map<Uuid, Set<Integer>> few = few(plain);
            assertEquals(plain, few);
            assertEquals(few, plain);
            assertEquals(plain.hashCode(), few.hashCode());
            assertEquals(plain.size(), few.size());
            assertEquals(plain, new HashMap<>(few));
            Map<Uuid, Set<Integer>> seen = new HashMap<>();
            few.forEach(seen::put);
            assertEquals(plain, seen);
            plain.forEach((topic, partitions) -> {
                assertEquals(partitions, few.get(topic));
                assertTrue(few.containsKey(topic));
            });
            assertNull(few.get(new Uuid(2, 0)));
            assertFalse(few.containsKey(null));
        }
    }

    @Test
    void itDoesNotChange() {
        Map<Uuid, Set<Integer>> few = few(Map.of(new Uuid(1, 1), Set.of(1)));
        assertThrows(UnsupportedOperationException.class, () -> few.put(new Uuid(1, 2), Set.of(2)));
        assertThrows(UnsupportedOperationException.class, () -> few.remove(new Uuid(1, 1)));
        assertThrows(UnsupportedOperationException.class, few::clear);
    }

    private static FewTopics few(Map<Uuid, Set<Integer>> plain) {
        @SuppressWarnings({"unchecked", "rawtypes"})
        Set<Integer>[] partitions = plain.values().toArray(new Set[0]);
        return new FewTopics(plain.keySet().toArray(new Uuid[0]), partitions);
    }
}
