package azimuth.broker;

import azimuth.planner.Group;
import azimuth.planner.Planner;
import azimuth.planner.Settings;
import azimuth.planner.Strategy;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What both assignors are: a strategy, and the broker's properties.
 *
 * <p>Thread-safe: the settings are written once, and a plan keeps nothing behind. An odd group (topics
 * that do not exist, claims that cannot be, members without subscriptions) gets a plan for what is left of it.
 */
abstract sealed class AzimuthAssignor implements ConsumerGroupPartitionAssignor, Configurable
        permits HrwAssignor, ShuffledAssignor {
    private static final Logger LOG = LoggerFactory.getLogger(AzimuthAssignor.class);
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    /** Most sets of large groups have one partition, mostly with a low number: assignments share these, which never change. */
    private static final List<Set<Integer>> SINGLES = IntStream.range(0, 128).<Set<Integer>>mapToObj(Set::of).toList();

    private final Strategy strategy;
    private volatile Settings settings = Settings.DEFAULT;

    AzimuthAssignor(Strategy strategy) {
        this.strategy = strategy;
    }

    @Override
    public void configure(Map<String, ?> properties) {
        settings = Settings.read(properties);
    }

    @Override
    public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber cluster) {
        Settings current = settings;
        BrokerGroup source = new BrokerGroup(spec, cluster);
        Group group = Group.read(source, current.seed());
        int[] caps = caps(group, current, cluster);
        int[] owner = new Planner(group, strategy, caps, current.epsilon(), current.seed()).plan();
        return new GroupAssignment(write(source, group, owner));
    }

    /** Most members of each topic: by its id, then by its name if the broker lets it be known, then the number for all. */
    private static int[] caps(Group group, Settings settings, SubscribedTopicDescriber cluster) {
        int[] caps = new int[group.topics()];
        TopicNames names = settings.workersByName().isEmpty() ? null : new TopicNames(cluster);
        for (int t = 0; t < caps.length; t++) {
            Uuid topic = (Uuid) group.topic(t);
            String name = names == null ? null : names.of(topic);
            if (names != null && name == null && !WARNED.getAndSet(true)) {
                LOG.warn("this broker does not let assignors know the names of topics: {} has no effect", Settings.WORKERS_BY_NAME);
            }
            caps[t] = settings.workersOf(topic, name);
        }
        return caps;
    }

    private static Map<String, MemberAssignment> write(BrokerGroup source, Group group, int[] owner) {
        int members = group.members.length;
        boolean[] changed = new boolean[members];
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] != group.owner[p]) {
                mark(changed, owner[p]);
                mark(changed, group.owner[p]);
            }
        }
        int[] end = new int[members];
        for (int m = 0; m < members; m++) {
            changed[m] |= !group.intact[m];
        }
        int[] mine = byOwner(owner, changed, end);
        Map<String, MemberAssignment> out = new HashMap<>(members * 2);
        int start = 0;
        for (int m = 0; m < members; m++) {
            // The broker compares what it gets with what it has: an unchanged assignment stays the same object.
            out.put(group.members[m], new Result(changed[m] ? topics(group, mine, start, end[m])
                    : source.claims(group.members[m])));
            start = end[m];
        }
        return out;
    }

    /** The partitions of one member, by topic. */
    private static Map<Uuid, Set<Integer>> topics(Group group, int[] mine, int start, int end) {
        Object[] topics = new Object[end - start];
        @SuppressWarnings({"unchecked", "rawtypes"}) // Java has no arrays of generic types
        Set<Integer>[] partitions = new Set[end - start];
        int count = 0;
        for (int at = start; at < end; count++) {
            int topic = group.topicOf[mine[at]];
            int next = endOfTopic(mine, at, end, group.first[topic + 1]);
            topics[count] = group.topic(topic);
            partitions[count] = numbers(mine, at, next, group.first[topic]);
            at = next;
        }
        if (count <= FewTopics.MOST) {
            return count == topics.length ? new FewTopics(topics, partitions)
                    : new FewTopics(Arrays.copyOf(topics, count), Arrays.copyOf(partitions, count));
        }
        Map<Uuid, Set<Integer>> out = new HashMap<>(count * 2);
        for (int t = 0; t < count; t++) {
            out.put((Uuid) topics[t], partitions[t]);
        }
        return out;
    }

    private static int endOfTopic(int[] mine, int start, int end, int stop) {
        int at = start + 1;
        while (at < end && mine[at] < stop) {
            at++;
        }
        return at;
    }

    /** Partitions of the members that changed, one member after the other, ascending; and where each member's end. */
    private static int[] byOwner(int[] owner, boolean[] changed, int[] end) {
        int count = 0;
        for (int m : owner) {
            if (m >= 0 && changed[m]) {
                end[m]++;
                count++;
            }
        }
        for (int m = 0, start = 0; m < end.length; m++) {
            int size = end[m];
            end[m] = start;
            start += size;
        }
        int[] out = new int[count];
        for (int p = 0; p < owner.length; p++) {
            int m = owner[p];
            if (m >= 0 && changed[m]) {
                out[end[m]++] = p;
            }
        }
        return out;
    }

    private static Set<Integer> numbers(int[] partitions, int start, int end, int first) {
        if (end - start == 1) {
            return single(partitions[start] - first);
        }
        Set<Integer> out = new HashSet<>(2 * (end - start));
        for (int i = start; i < end; i++) {
            out.add(partitions[i] - first);
        }
        return out;
    }

    private static Set<Integer> single(int partition) {
        return partition < SINGLES.size() ? SINGLES.get(partition) : Set.of(partition);
    }

    private static void mark(boolean[] changed, int member) {
        if (member >= 0) {
            changed[member] = true;
        }
    }

    private record Result(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {}
}
