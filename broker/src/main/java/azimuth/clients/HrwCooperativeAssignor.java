package azimuth.clients;

import azimuth.planner.Strategy;

/**
 * {@code hrw-cooperative}: Python's {@code HRWAssignor(cooperative=True)}, for consumers in Java.
 *
 * <p>In a consumer of the classic protocol: {@code partition.assignment.strategy=azimuth.clients.HrwCooperativeAssignor}.
 */
public final class HrwCooperativeAssignor extends ClassicAssignor {
    /** Made by the consumer. */
    public HrwCooperativeAssignor() {
        super(Strategy.HRW, RebalanceProtocol.COOPERATIVE);
    }
}
