package azimuth.broker;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Times a plan of each assignor beside Kafka's own: from nothing, and when one member joins or leaves.
 *
 * <p>Assignors take turns, so noise of the machine hits all alike; the least of many turns counts. Members, topics,
 * partitions of each and turns come from a property: {@code mvn test -Dtest=TimingTest -Dazimuth.timing=1000,1000,10,200}.
 */
class TimingTest {
    private static final int DISCARDED = 20;

    @Test
    @EnabledIfSystemProperty(named = "azimuth.timing", matches = "\\d+(,\\d+){3}")
    void printsMillisecondsAndTheRatioToUniform() {
        int[] sizes = Arrays.stream(System.getProperty("azimuth.timing").split(",")).mapToInt(Integer::parseInt).toArray();
        int members = sizes[0];
        int topics = sizes[1];
        int partitions = sizes[2];
        int turns = sizes[3];
        List<ConsumerGroupPartitionAssignor> assignors =
                List.of(new UniformAssignor(), new RangeAssignor(), new HrwAssignor(), new ShuffledAssignor());
        GroupOf empty = TimedGroups.group(members, topics, partitions);
        List<GroupOf> joined = new ArrayList<>();
        List<GroupOf> left = new ArrayList<>();
        for (ConsumerGroupPartitionAssignor assignor : assignors) {
            GroupAssignment made = assignor.assign(empty, empty);
            joined.add(TimedGroups.kept(TimedGroups.changed(empty, made, true)));
            left.add(TimedGroups.kept(TimedGroups.changed(empty, made, false)));
        }
        List<GroupOf> full = new ArrayList<>(assignors.stream().map(assignor -> empty).toList());
        System.out.printf(Locale.ROOT, "%d members, %d topics of %d partitions, Java %s, %d cores%n", members, topics, partitions,
                System.getProperty("java.version"), Runtime.getRuntime().availableProcessors());
        print("full", assignors, measure(assignors, full, turns));
        print("join", assignors, measure(assignors, joined, turns));
        print("leave", assignors, measure(assignors, left, turns));
    }

    private static double[] measure(List<ConsumerGroupPartitionAssignor> assignors, List<GroupOf> groups, int turns) {
        double[] least = new double[assignors.size()];
        Arrays.fill(least, Double.MAX_VALUE);
        for (int turn = 0; turn < turns + DISCARDED; turn++) {
            for (int a = 0; a < least.length; a++) {
                long began = System.nanoTime();
                int planned = assignors.get(a).assign(groups.get(a), groups.get(a)).members().size();
                double took = (System.nanoTime() - began) / 1e6;
                if (turn >= DISCARDED && planned > 0) {
                    least[a] = Math.min(least[a], took);
                }
            }
        }
        return least;
    }

    private static void print(String what, List<ConsumerGroupPartitionAssignor> assignors, double[] least) {
        for (int a = 0; a < least.length; a++) {
            System.out.printf(Locale.ROOT, "%-5s %-17s %9.2f ms  %5.2f x uniform%n", what, assignors.get(a).name(), least[a],
                    least[a] / least[0]);
        }
    }
}
