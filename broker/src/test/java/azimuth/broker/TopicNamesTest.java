package azimuth.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.junit.jupiter.api.Test;

/** The describers of Kafka 4.0 to 4.4 hold names in other forms; one that holds none is no error. */
class TopicNamesTest {
    private static final Uuid TOPIC = new Uuid(1, 2);
    private static final Uuid OTHER = new Uuid(3, 4);

    record Topic(String name) {}

    record Image(Topics topics) {}

    record Topics(Map<Uuid, Topic> all) {
        public Topic getTopic(Uuid id) {
            return all.get(id);
        }
    }

    record CoordinatorImage(Map<Uuid, Topic> all) {
        public Optional<Topic> topicMetadata(String name) {
            throw new IllegalStateException("asked by " + name);
        }

        public Optional<Topic> topicMetadata(Uuid id) {
            return Optional.ofNullable(all.get(id));
        }
    }

    /** A describer whose field has the name that the broker's own has. */
    private abstract static class Describer implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            return 1;
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }

    private static final class OfMaps extends Describer {
        @SuppressWarnings("unused") // read by reflection
        private final Map<Uuid, Topic> topicMetadata = Map.of(TOPIC, new Topic("flights"));
    }

    private static final class OfImages extends Describer {
        @SuppressWarnings("unused") // read by reflection
        private final Image metadataImage = new Image(new Topics(Map.of(TOPIC, new Topic("flights"))));
    }

    private static final class OfCoordinatorImages extends Describer {
        @SuppressWarnings("unused") // read by reflection
        private final CoordinatorImage metadataImage = new CoordinatorImage(Map.of(TOPIC, new Topic("flights")));
    }

    private static final class OfNothing extends Describer {
        @SuppressWarnings("unused") // read by reflection
        private final Object metadataImage = null;
    }

    @Test
    void everyFormOfMetadataHasTheName() {
        for (Describer cluster : new Describer[] {new OfMaps(), new OfImages(), new OfCoordinatorImages()}) {
            assertEquals("flights", new TopicNames(cluster).of(TOPIC));
            assertNull(new TopicNames(cluster).of(OTHER), "a topic that was deleted");
        }
    }

    @Test
    void aDescriberWithoutMetadataHasNoNames() {
        assertNull(new TopicNames(new OfNothing()).of(TOPIC));
        assertNull(new TopicNames(new GroupOf()).of(TOPIC));
    }
}
