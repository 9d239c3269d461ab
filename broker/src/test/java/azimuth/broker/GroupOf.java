package azimuth.broker;

import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/** A group and a cluster as a test writes them; it may say what no broker would. */
final class GroupOf implements GroupSpec, SubscribedTopicDescriber {
    final Map<String, Member> members = new LinkedHashMap<>();
    final Map<Uuid, Integer> topics = new HashMap<>();
    final Map<Uuid, List<Set<String>>> racks = new HashMap<>();
    private SubscriptionType type;
    private Map<Uuid, Set<Integer>> assigned;

    record Member(Optional<String> rackId, Optional<String> instanceId, Set<Uuid> subscribedTopicIds,
            Map<Uuid, Set<Integer>> partitions) implements MemberSubscription, MemberAssignment {
        Member(String rack, String instance, Set<Uuid> wanted) {
            this(Optional.ofNullable(rack), Optional.ofNullable(instance), wanted, new HashMap<>());
        }

        void claim(Uuid topic, int partition) {
            partitions.computeIfAbsent(topic, id -> new HashSet<>()).add(partition);
        }
    }

    /** Computes once what the broker has at hand; the group may not change afterwards. */
    void fix() {
        type = subscriptionType();
        members.replaceAll((name, member) -> new Member(member.rackId, member.instanceId, member.subscribedTopicIds,
                Collections.unmodifiableMap(member.partitions)));
        Map<Uuid, Set<Integer>> all = new HashMap<>();
        members.values().forEach(member -> member.partitions.forEach(
                (topic, mine) -> all.computeIfAbsent(topic, id -> new HashSet<>()).addAll(mine)));
        assigned = all;
    }

    @Override
    public Collection<String> memberIds() {
        return members.keySet();
    }

    @Override
    public SubscriptionType subscriptionType() {
        if (type != null) {
            return type;
        }
        boolean alike = members.values().stream().map(Member::subscribedTopicIds).distinct().count() <= 1;
        return alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
    }

    @Override
    public boolean isPartitionAssigned(Uuid topicId, int partitionId) {
        if (assigned != null) {
            return assigned.getOrDefault(topicId, Set.of()).contains(partitionId);
        }
        return members.values().stream()
                .anyMatch(member -> member.partitions.getOrDefault(topicId, Set.of()).contains(partitionId));
    }

    // No @Override: Kafka 4.0 does not have this method.
    public boolean isPartitionAssignable(Uuid topicId, int partitionId) {
        return true;
    }

    @Override
    public MemberSubscription memberSubscription(String memberId) {
        return members.get(memberId);
    }

    @Override
    public MemberAssignment memberAssignment(String memberId) {
        return members.get(memberId);
    }

    @Override
    public int numPartitions(Uuid topicId) {
        return topics.getOrDefault(topicId, -1);
    }

    @Override
    public Set<String> racksForPartition(Uuid topicId, int partition) {
        return racks.containsKey(topicId) ? racks.get(topicId).get(partition) : Set.of();
    }
}
