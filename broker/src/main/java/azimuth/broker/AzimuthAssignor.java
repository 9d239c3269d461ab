package azimuth.broker;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * What both assignors are: a strategy, and the broker's properties.
 *
 * <p>Thread-safe: the settings are written once, and a plan keeps nothing behind. Nothing is logged. An odd group (topics
 * that do not exist, claims that cannot be, members without subscriptions) gets a plan for what is left of it.
 */
abstract sealed class AzimuthAssignor implements ConsumerGroupPartitionAssignor, Configurable
        permits HrwAssignor, ShuffledAssignor {
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
        Group group = new Group(spec, cluster, current.seed());
        return new GroupAssignment(write(spec, group, new Planner(group, current, strategy).plan()));
    }

    private static Map<String, MemberAssignment> write(GroupSpec spec, Group group, int[] owner) {
        int members = group.members.length;
        boolean[] changed = new boolean[members];
        for (int p = 0; p < owner.length; p++) {
            if (owner[p] != group.owner[p]) {
                mark(changed, owner[p]);
                mark(changed, group.owner[p]);
            }
        }
        Map<String, MemberAssignment> out = new HashMap<>(members * 2);
        Result[] results = new Result[members];
        for (int m = 0; m < members; m++) {
            // The broker compares and keeps what it gets: an unchanged assignment stays the same object.
            changed[m] |= !group.intact[m];
            results[m] = new Result(changed[m] ? new HashMap<>() : spec.memberAssignment(group.members[m]).partitions());
            out.put(group.members[m], results[m]);
        }
        for (int p = 0; p < owner.length; p++) {
            int m = owner[p];
            if (m >= 0 && changed[m]) {
                int topic = group.topicOf[p];
                results[m].partitions().computeIfAbsent(group.topics[topic], id -> new HashSet<>()).add(p - group.first[topic]);
            }
        }
        return out;
    }

    private static void mark(boolean[] changed, int member) {
        if (member >= 0) {
            changed[member] = true;
        }
    }

    private record Result(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {}
}
