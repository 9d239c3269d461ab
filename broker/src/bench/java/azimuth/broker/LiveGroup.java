package azimuth.broker;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.SubscribedTopicDescriberImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * A group in the classes of the broker, as {@code TargetAssignmentBuilder} hands it to an assignor (4.2 and later).
 *
 * @param spec the members; what they have went through the records that the broker writes and reads
 * @param cluster the topics
 */
record LiveGroup(GroupSpec spec, SubscribedTopicDescriber cluster) {
    /**
     * Makes the same group in the broker's classes.
     *
     * @param loaded whether the broker read the records from its log after a restart: each names topics by ids of its own; else
     *     it keeps the records that it wrote
     */
    static LiveGroup of(GroupOf group, boolean loaded) {
        KRaftCoordinatorMetadataImage image = image(group);
        TopicIds.TopicResolver resolver = new TopicIds.CachedTopicResolver(image);
        Map<Set<Uuid>, Set<String>> subscriptions = new HashMap<>();
        ConsumerGroup live = new ConsumerGroup(new LogContext(), new SnapshotRegistry(new LogContext()), "timed");
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        group.members.forEach((name, member) -> {
            Assignment before = member.partitions().isEmpty() ? Assignment.EMPTY : replayed(name, member.partitions(), loaded);
            live.updateTargetAssignment(name, before);
            Set<String> wanted = subscriptions.computeIfAbsent(member.subscribedTopicIds(), LiveGroup::names);
            members.put(name, new MemberSubscriptionAndAssignmentImpl(member.rackId(), member.instanceId(),
                    new TopicIds(wanted, resolver), before));
        });
        return new LiveGroup(new GroupSpecImpl(members, group.subscriptionType(), live.invertedTargetAssignment()),
                new SubscribedTopicDescriberImpl(image));
    }

    private static Assignment replayed(String member, Map<Uuid, Set<Integer>> partitions, boolean loaded) {
        ConsumerGroupTargetAssignmentMemberValue value = (ConsumerGroupTargetAssignmentMemberValue) GroupCoordinatorRecordHelpers
                .newConsumerGroupTargetAssignmentRecord("timed", member, partitions).value().message();
        if (loaded) {
            value.topicPartitions().forEach(topic -> topic.setTopicId(
                    new Uuid(topic.topicId().getMostSignificantBits(), topic.topicId().getLeastSignificantBits())));
        }
        return Assignment.fromRecord(value);
    }

    private static KRaftCoordinatorMetadataImage image(GroupOf group) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        group.topics.forEach((id, partitions) -> {
            delta.replay(new TopicRecord().setName(name(id)).setTopicId(id));
            for (int p = 0; p < partitions; p++) {
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(p));
            }
        });
        return new KRaftCoordinatorMetadataImage(delta.apply(MetadataProvenance.EMPTY));
    }

    private static Set<String> names(Set<Uuid> topics) {
        Map<String, Boolean> names = new HashMap<>();
        topics.forEach(topic -> names.put(name(topic), true));
        return names.keySet();
    }

    private static String name(Uuid topic) {
        return "topic-" + topic;
    }
}
