package azimuth.clients;

import azimuth.planner.Strategy;

/**
 * {@code shuffled}: Python's {@code ShuffledRoundRobinAssignor()}, for consumers in Java.
 *
 * <p>In a consumer of the classic protocol: {@code partition.assignment.strategy=azimuth.clients.ShuffledAssignor}. Java's client
 * shows no leader what an eager member owns, so its partitions may move at each rebalance: prefer the cooperative one.
 */
public final class ShuffledAssignor extends ClassicAssignor {
    /** Made by the consumer. */
    public ShuffledAssignor() {
        super(Strategy.SHUFFLED, RebalanceProtocol.EAGER);
    }
}
