package azimuth.clients;

import azimuth.planner.Group;
import azimuth.planner.Planner;
import azimuth.planner.Settings;
import azimuth.planner.Strategy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the assignors of the classic protocol are: names and plans of Python's, so that members of both languages share a
 * group.
 *
 * <p>Settings are properties of the consumer: {@code azimuth.workers}, {@code azimuth.workers.by.name},
 * {@code azimuth.epsilon}, {@code azimuth.seed}, equal for all members, and {@code azimuth.agent} for a member without
 * {@code group.instance.id}. The leader's settings apply. Weights that Python's members send count as 1.
 */
abstract sealed class ClassicAssignor implements ConsumerPartitionAssignor, Configurable
        permits HrwAssignor, HrwCooperativeAssignor, ShuffledAssignor, ShuffledCooperativeAssignor {
    private static final Logger LOG = LoggerFactory.getLogger(ClassicAssignor.class);
    private static final String AGENT = "azimuth.agent";

    private final Strategy strategy;
    private final RebalanceProtocol protocol;
    private Settings settings = Settings.DEFAULT;
    private UserData data = UserData.NONE;
    private boolean warned;

    ClassicAssignor(Strategy strategy, RebalanceProtocol protocol) {
        this.strategy = strategy;
        this.protocol = protocol;
    }

    @Override
    public void configure(Map<String, ?> properties) {
        Map<String, Object> others = new HashMap<>(properties);
        Object agent = others.remove(AGENT);
        settings = Settings.read(others);
        data = new UserData(agent == null ? null : agent.toString(), 1);
    }

    @Override
    public String name() {
        String name = strategy.name().toLowerCase(Locale.ROOT);
        return protocol == RebalanceProtocol.COOPERATIVE ? name + "-cooperative" : name;
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return List.of(protocol);
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        return data.encode();
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription subscriptions) {
        ClassicGroup source = new ClassicGroup(cluster, subscriptions.groupSubscription());
        warnOfWeights(source);
        Group group = Group.read(source, settings.seed());
        int[] caps = new int[group.topics()];
        for (int t = 0; t < caps.length; t++) {
            caps[t] = strategy == Strategy.HRW ? settings.workersByName().of((String) group.topic(t), settings.workers()) : Planner.NO_CAP;
        }
        double epsilon = strategy == Strategy.HRW ? settings.epsilon() : 0;
        int[] owner = new Planner(group, strategy, caps, epsilon, settings.seed()).plan();
        if (protocol == RebalanceProtocol.COOPERATIVE) {
            withhold(source, group, owner);
        }
        return write(group, owner);
    }

    /**
     * Takes out what another member may still read: it is given in the next round, which members that give up partitions
     * ask for (KIP-429).
     *
     * <p>A member whose claims are older than others' may have none to give up, and would not ask: it keeps them for now.
     */
    private static void withhold(ClassicGroup source, Group group, int[] owner) {
        Map<TopicPartition, Integer> claimants = new HashMap<>();
        int newest = -1;
        for (String member : group.members) {
            newest = Math.max(newest, source.generation(member));
        }
        for (int m = 0; m < group.members.length; m++) {
            int claimant = m;
            source.claims(group.members[m]).forEach((topic, partitions) -> partitions.forEach(
                    p -> claimants.merge(new TopicPartition(topic, p), claimant, (one, two) -> Group.NOBODY)));
        }
        for (int p = 0; p < owner.length; p++) {
            int topic = group.topicOf[p];
            Integer claimant = claimants.get(new TopicPartition((String) group.topic(topic), p - group.first[topic]));
            if (claimant != null && claimant != owner[p] && group.owner[p] != owner[p]) {
                boolean late = claimant >= 0 && claimant == group.owner[p] && source.generation(group.members[claimant]) < newest;
                owner[p] = late ? claimant : Group.NOBODY;
            }
        }
    }

    private static GroupAssignment write(Group group, int[] owner) {
        List<List<TopicPartition>> given = new ArrayList<>();
        Map<String, Assignment> out = new HashMap<>();
        for (String member : group.members) {
            given.add(new ArrayList<>());
            out.put(member, new Assignment(given.get(given.size() - 1)));
        }
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] >= 0) {
                int topic = group.topicOf[p];
                given.get(owner[p]).add(new TopicPartition((String) group.topic(topic), p - group.first[topic]));
            }
        }
        return new GroupAssignment(out);
    }

    private void warnOfWeights(ClassicGroup source) {
        for (String member : source.members()) {
            UserData sent = source.data(member);
            if (!warned && (sent == null || sent.weight() != 1)) {
                warned = true;
                LOG.warn("member {} sent {}", member, sent == null ? "user data of another assignor, which is ignored"
                        : "a weight: a leader in Java counts it as 1");
            }
        }
    }
}
