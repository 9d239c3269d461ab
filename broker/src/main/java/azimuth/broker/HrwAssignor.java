package azimuth.broker;

import azimuth.planner.Strategy;

/**
 * {@code azimuth-hrw}: each topic on the members that rendezvous hashing ranks highest, claims kept.
 *
 * <p>On the broker: {@code group.consumer.assignors=azimuth.broker.HrwAssignor,uniform,range}. In a consumer:
 * {@code group.protocol=consumer} and {@code group.remote.assignor=azimuth-hrw}.
 */
public final class HrwAssignor extends AzimuthAssignor {
    /** Made by the broker. */
    public HrwAssignor() {
        super(Strategy.HRW);
    }

    @Override
    public String name() {
        return "azimuth-hrw";
    }
}
