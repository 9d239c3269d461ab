package azimuth.broker;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
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

    /** What is planned: {@code nothing}: no member has anything; {@code joined}: one is new; {@code left}: one is gone. */
    @Param({"nothing", "joined", "left"})
    private String change;

    /**
     * How the group is kept.
     *
     * <p>{@code live}: in the broker's classes, its assignments as replayed from the records that it wrote; {@code loaded}: the
     * same from its log after a restart; {@code returned}: in plain maps, its assignments as the assignor returned them.
     */
    @Param({"live", "loaded"})
    private String state;

    private ConsumerGroupPartitionAssignor planner;
    private GroupSpec group;
    private SubscribedTopicDescriber cluster;

    /** Makes the group. */
    @Setup
    public void makeGroup() throws ReflectiveOperationException {
        planner = (ConsumerGroupPartitionAssignor) Class.forName(assignor).getConstructor().newInstance();
        int[] sizes = Arrays.stream(size.split("x")).mapToInt(Integer::parseInt).toArray();
        GroupOf empty = TimedGroups.group(sizes[0], sizes[1], sizes[2]);
        GroupOf before = change.equals("nothing") ? empty : TimedGroups.changed(empty, planner.assign(empty, empty), change.equals("joined"));
        LiveGroup live = state.equals("returned") ? new LiveGroup(before, before) : LiveGroup.of(before, state.equals("loaded"));
        group = live.spec();
        cluster = live.cluster();
    }

    /** One call of the broker. */
    @Benchmark
    public GroupAssignment plan() {
        return planner.assign(group, cluster);
    }
}
