package azimuth.clients;

import azimuth.planner.Source;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** A group of the classic protocol as its leader sees it: topics by their names, claims with generations (KIP-792). */
final class ClassicGroup implements Source<String> {
    private final Cluster cluster;
    private final Map<String, Subscription> members;
    private final Map<String, Set<String>> topics = new HashMap<>();
    private final Map<String, List<Set<String>>> racks = new HashMap<>();
    private final Set<Set<String>> subscriptions = new HashSet<>();
    private final Map<String, UserData> data = new HashMap<>();

    ClassicGroup(Cluster cluster, Map<String, Subscription> members) {
        this.cluster = cluster;
        this.members = members;
        members.forEach((member, subscription) -> {
            Set<String> wanted = Set.copyOf(subscription.topics());
            topics.put(member, wanted);
            subscriptions.add(wanted);
            data.put(member, UserData.decode(subscription.userData()));
        });
    }

    /** What a member sent; null if it belongs to another assignor. */
    UserData data(String member) {
        return data.get(member);
    }

    @Override
    public Collection<String> members() {
        return members.keySet();
    }

    @Override
    public String identity(String member) {
        String instance = members.get(member).groupInstanceId().orElse("");
        UserData sent = data.get(member);
        String agent = sent == null || sent.agent() == null || sent.agent().isEmpty() ? member : sent.agent();
        return instance.isEmpty() ? agent : instance;
    }

    @Override
    public String rack(String member) {
        String rack = members.get(member).rackId().orElse("");
        return rack.isEmpty() ? null : rack;
    }

    @Override
    public Set<String> topics(String member) {
        return topics.get(member);
    }

    @Override
    public boolean alike() {
        return subscriptions.size() <= 1;
    }

    @Override
    public Map<String, List<Integer>> claims(String member) {
        Map<String, List<Integer>> claims = new HashMap<>();
        for (TopicPartition claim : members.get(member).ownedPartitions()) {
            claims.computeIfAbsent(claim.topic(), topic -> new ArrayList<>()).add(claim.partition());
        }
        return claims;
    }

    @Override
    public int generation(String member) {
        return members.get(member).generationId().orElse(-1);
    }

    @Override
    public byte[] name(String topic) {
        return topic.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public int partitions(String topic) {
        return cluster.partitionsForTopic(topic).stream().mapToInt(PartitionInfo::partition).max().orElse(-1) + 1;
    }

    @Override
    public Set<String> racks(String topic, int partition) {
        return racks.computeIfAbsent(topic, this::racks).get(partition);
    }

    private List<Set<String>> racks(String topic) {
        List<Set<String>> out = new ArrayList<>();
        for (int p = partitions(topic); p > 0; p--) {
            out.add(new HashSet<>());
        }
        for (PartitionInfo partition : cluster.partitionsForTopic(topic)) {
            for (Node replica : partition.replicas()) {
                if (replica.hasRack() && !replica.rack().isEmpty()) {
                    out.get(partition.partition()).add(replica.rack());
                }
            }
        }
        return out;
    }
}
