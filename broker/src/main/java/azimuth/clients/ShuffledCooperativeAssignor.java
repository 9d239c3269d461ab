package azimuth.clients;

import azimuth.planner.Strategy;

/**
 * {@code shuffled-cooperative}: Python's {@code ShuffledRoundRobinAssignor(cooperative=True)}, for consumers in Java.
 *
 * <p>In a consumer of the classic protocol: {@code partition.assignment.strategy=azimuth.clients.ShuffledCooperativeAssignor}.
 */
public final class ShuffledCooperativeAssignor extends ClassicAssignor {
    /** Made by the consumer. */
    public ShuffledCooperativeAssignor() {
        super(Strategy.SHUFFLED, RebalanceProtocol.COOPERATIVE);
    }
}
