package azimuth.broker;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * Names of topics, which the interface of assignors does not give.
 *
 * <p>The broker's own describer of topics has them in its only field, in three forms in Kafka 4.0 to 4.4. So
 * this looks into it by reflection. Where a later broker has no such field, a name is unknown, and never an error.
 */
final class TopicNames {
    private final Object metadata;

    TopicNames(SubscribedTopicDescriber cluster) {
        metadata = metadata(cluster);
    }

    /** The name of a topic, or null. */
    String of(Uuid topic) {
        try {
            Object found = metadata instanceof Map<?, ?> topics ? topics.get(topic) : find(topic);
            if (found instanceof Optional<?> some) {
                found = some.orElse(null);
            }
            return found != null && call(found, "name") instanceof String name ? name : null;
        } catch (ReflectiveOperationException | RuntimeException error) {
            return null;
        }
    }

    private Object find(Uuid topic) throws ReflectiveOperationException {
        if (metadata == null) {
            return null;
        }
        for (Method method : metadata.getClass().getMethods()) {
            if (method.getName().equals("topicMetadata") && method.getParameterTypes()[0] == Uuid.class) { // 4.2 and later
                method.setAccessible(true);
                return method.invoke(metadata, topic);
            }
        }
        Object topics = call(metadata, "topics"); // 4.1
        Method method = topics.getClass().getMethod("getTopic", Uuid.class);
        method.setAccessible(true);
        return method.invoke(topics, topic);
    }

    private static Object call(Object of, String name) throws ReflectiveOperationException {
        Method method = of.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(of);
    }

    private static Object metadata(SubscribedTopicDescriber cluster) {
        try {
            for (Field field : cluster.getClass().getDeclaredFields()) {
                if (field.getName().equals("metadataImage") || field.getName().equals("topicMetadata")) {
                    field.setAccessible(true);
                    return field.get(cluster);
                }
            }
        } catch (ReflectiveOperationException | RuntimeException error) {
            // as if there were no such field
        }
        return null;
    }
}
