package azimuth.broker;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * The time of one plan, beside Kafka's own assignors.
 *
 * <p>Single calls are measured, because on a busy machine the average shows its load: compare p0.00 and p0.50. The
 * warm-up counts calls, because there some seconds are too few calls for the compiler.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 1_500)
@Measurement(iterations = 500)
@Fork(value = 1, jvmArgsAppend = "-Xmx3g")
public class AssignorBenchmark {
    /** A class: another one on the class path may be named with {@code -p assignor=}. */
    @Param({
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        "azimuth.broker.HrwAssignor",
        "azimuth.broker.ShuffledAssignor",
    })
    private String assignor;

    /** Members x topics x partitions of each topic. */
    @Param({"1000x1000x10", "1000x10x1000"})
    private String size;

    /**
     * What the group had before.
     *
     * <p>{@code nothing}; {@code joined}: one member is new, the others have what the assignor gave them, in the maps
     * that it returned; {@code restarted}: the same in the hash maps that a broker makes of its record, with or without a restart.
     */
    @Param({"nothing", "joined", "restarted"})
    private String before;

    private ConsumerGroupPartitionAssignor planner;
    private GroupOf group;

    /** Makes the group. */
    @Setup
    public void makeGroup() throws ReflectiveOperationException {
        planner = (ConsumerGroupPartitionAssignor) Class.forName(assignor).getConstructor().newInstance();
        int[] sizes = Arrays.stream(size.split("x")).mapToInt(Integer::parseInt).toArray();
        GroupOf empty = TimedGroups.group(sizes[0], sizes[1], sizes[2]);
        group = before.equals("nothing") ? empty : TimedGroups.join(empty, planner.assign(empty, empty), before.equals("restarted"));
    }

    /** One call of the broker. */
    @Benchmark
    public GroupAssignment plan() {
        return planner.assign(group, group);
    }
}
