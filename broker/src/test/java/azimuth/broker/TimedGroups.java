package azimuth.broker;

import java.util.Collections;
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

    /** One more member; the others have what the plan gave them, as it was returned or as the broker reads it from its record. */
    static GroupOf join(GroupOf empty, GroupAssignment made, boolean copied) {
        GroupOf group = new GroupOf();
        group.topics.putAll(empty.topics);
        empty.members.forEach((name, member) -> {
            Map<Uuid, Set<Integer>> kept = made.members().get(name).partitions();
            Map<Uuid, Set<Integer>> mine = copied ? new HashMap<>() : Collections.unmodifiableMap(kept);
            if (copied) {
                kept.forEach((topic, given) -> mine.put(topic, new HashSet<>(given)));
            }
            group.members.put(name, new GroupOf.Member(Optional.empty(), member.instanceId(), member.subscribedTopicIds(), mine));
        });
        group.members.put("new", new GroupOf.Member(null, "agent-new", Set.copyOf(empty.topics.keySet())));
        group.fix();
        return group;
    }
}
