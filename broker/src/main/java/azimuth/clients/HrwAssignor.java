package azimuth.clients;

import azimuth.planner.Strategy;

/**
 * {@code hrw}: Python's {@code HRWAssignor()}, for consumers in Java.
 *
 * <p>In a consumer of the classic protocol: {@code partition.assignment.strategy=azimuth.clients.HrwAssignor}. Java's client
 * shows no leader what an eager member owns, so its partitions may move at each rebalance: prefer the cooperative one.
 */
public final class HrwAssignor extends ClassicAssignor {
    /** Made by the consumer. */
    public HrwAssignor() {
        super(Strategy.HRW, RebalanceProtocol.EAGER);
    }
}
