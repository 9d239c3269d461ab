package azimuth.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.junit.jupiter.api.Test;

/** Groups so large that they are planned in another way, and what a call leaves behind. */
class LargeGroupsTest {
    private static final int MEMBERS = 1_000;

    private static GroupOf group(int members, int topics, int partitions) {
        GroupOf group = new GroupOf();
        IntStream.range(0, topics).forEach(t -> group.topics.put(new Uuid(1, t), partitions));
        Set<Uuid> all = Set.copyOf(group.topics.keySet());
        IntStream.range(0, members).forEach(m -> group.members.put("member-" + m, new GroupOf.Member(null, "agent-" + m, all)));
        return group;
    }

    /** On both sides of 1,000,000 pairs of a member and a kind: each topic with a cap is a kind. */
    @Test
    void capsHoldAndNoPartitionIsLostAtTheBorderOfTheExactPlan() {
        for (int topics : new int[] {1_000, 1_001}) {
            GroupOf group = group(MEMBERS, topics, 2);
            HrwAssignor assignor = new HrwAssignor();
            assignor.configure(Map.of("azimuth.workers", 1));
            Map<Uuid, Set<String>> readers = new HashMap<>();
            Set<String> given = new HashSet<>();
            GroupAssignment made = assignor.assign(group, group);
            made.members().forEach((name, mine) -> mine.partitions().forEach((topic, partitions) -> {
                readers.computeIfAbsent(topic, id -> new HashSet<>()).add(name);
                partitions.forEach(p -> assertTrue(given.add(topic + " " + p), "given twice"));
            }));
            assertEquals(topics * 2, given.size());
            assertTrue(readers.values().stream().allMatch(each -> each.size() == 1));
        }
    }

    /** Each topic has pieces of 3 and 2, so loads of 5 come from exchanges; the search must not stop before, or the next plan goes on. */
    @Test
    void anUnchangedGroupOfTightLoadsMovesNothing() {
        GroupOf group = group(2_000, 2_000, 5);
        HrwAssignor assignor = new HrwAssignor();
        assignor.configure(Map.of("azimuth.workers", 2));
        GroupAssignment made = assignor.assign(group, group);
        made.members().forEach((name, mine) -> mine.partitions().forEach(
                (topic, partitions) -> partitions.forEach(p -> group.members.get(name).claim(topic, p))));
        assignor.assign(group, group).members().forEach(
                (name, mine) -> assertEquals(made.members().get(name).partitions(), mine.partitions()));
    }

    /** A coordinator lives for months: a call may not need more memory than the ones before it. */
    @Test
    void aCallAllocatesAsMuchAsTheCallsBeforeIt() {
        GroupOf group = group(100, 200, 5);
        group.fix();
        HrwAssignor assignor = new HrwAssignor();
        long early = median(assignor, group, 60);
        long late = median(assignor, group, 60);
        assertTrue(late <= early * 1.02, () -> "a call allocated " + early + " bytes, and later " + late);
    }

    private static long median(HrwAssignor assignor, GroupOf group, int calls) {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long[] bytes = new long[calls];
        for (int i = 0; i < calls; i++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            assignor.assign(group, group);
            bytes[i] = threads.getCurrentThreadAllocatedBytes() - before;
        }
        Arrays.sort(bytes);
        return bytes[calls / 2];
    }
}
