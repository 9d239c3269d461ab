package azimuth.broker;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;

/** Groups whose plans are timed. */
final class TimedGroups {
    private TimedGroups() {}

    /** Members that all read all topics, and have nothing. */
    static GroupOf group(int members, int topics, int partitions) {
        Random dice = new Random(1);
        GroupOf group = new GroupOf();
        for (int t = 0; t < topics; t++) {
            group.topics.put(new Uuid(dice.nextLong(), dice.nextLong()), partitions);
        }
        Set<Uuid> all = Set.copyOf(group.topics.keySet());
        for (int m = 0; m < members; m++) {
            group.members.put(new Uuid(dice.nextLong(), dice.nextLong()).toString(), new GroupOf.Member(null, "agent-" + m, all));
        }
        group.fix();
        return group;
    }

    /**
     * A member joins or leaves; the others have what the plan gave them.
     *
     * @param made plan of the group before, in the maps that the assignor returned
     * @param joined whether a member joins; else the first one leaves
     */
    static GroupOf changed(GroupOf empty, GroupAssignment made, boolean joined) {
        GroupOf group = new GroupOf();
        group.topics.putAll(empty.topics);
        empty.members.forEach((name, member) -> group.members.put(name, new GroupOf.Member(Optional.empty(), member.instanceId(),
                member.subscribedTopicIds(), made.members().get(name).partitions())));
        if (joined) {
            group.members.put("new", new GroupOf.Member(null, "agent-new", Set.copyOf(empty.topics.keySet())));
        } else {
            group.members.remove(group.members.keySet().iterator().next());
        }
        group.fix();
        return group;
    }

    /** The same group with its assignments in hash maps, as a broker makes them of each record that it writes or loads. */
    static GroupOf kept(GroupOf group) {
        GroupOf kept = new GroupOf();
        kept.topics.putAll(group.topics);
        group.members.forEach((name, member) -> {
            Map<Uuid, Set<Integer>> mine = new HashMap<>();
            member.partitions().forEach((topic, partitions) -> mine.put(topic, new HashSet<>(partitions)));
            kept.members.put(name, new GroupOf.Member(member.rackId(), member.instanceId(), member.subscribedTopicIds(), mine));
        });
        kept.fix();
        return kept;
    }
}
