package azimuth.broker;

import azimuth.planner.Source;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/** A group as the broker describes it: topics by their ids, claims without generations. */
final class BrokerGroup implements Source<Uuid> {
    private final GroupSpec spec;
    private final SubscribedTopicDescriber cluster;

    /** The member that was asked for last: more questions follow, and one look-up serves them. */
    private String last;
    private MemberSubscription subscription;

    BrokerGroup(GroupSpec spec, SubscribedTopicDescriber cluster) {
        this.spec = spec;
        this.cluster = cluster;
    }

    private MemberSubscription subscription(String member) {
        if (!member.equals(last)) {
            subscription = spec.memberSubscription(member);
            last = member;
        }
        return subscription;
    }

    @Override
    public Collection<String> members() {
        return spec.memberIds();
    }

    @Override
    public String identity(String member) {
        String instance = subscription(member).instanceId().orElse("");
        return instance.isEmpty() ? member : instance;
    }

    @Override
    public String rack(String member) {
        return subscription(member).rackId().orElse(null);
    }

    @Override
    public Set<Uuid> topics(String member) {
        Set<Uuid> topics = subscription(member).subscribedTopicIds();
        return topics == null ? Set.of() : topics;
    }

    @Override
    public boolean alike() {
        return spec.subscriptionType() == SubscriptionType.HOMOGENEOUS;
    }

    @Override
    public Map<Uuid, Set<Integer>> claims(String member) {
        MemberAssignment before = spec.memberAssignment(member);
        return before == null || before.partitions() == null ? Map.of() : before.partitions();
    }

    @Override
    public byte[] name(Uuid topic) {
        return TopicIds.text(topic);
    }

    @Override
    public int partitions(Uuid topic) {
        return cluster.numPartitions(topic);
    }

    @Override
    public Set<String> racks(Uuid topic, int partition) {
        return cluster.racksForPartition(topic, partition);
    }
}
