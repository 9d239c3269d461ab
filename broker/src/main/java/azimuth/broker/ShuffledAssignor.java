package azimuth.broker;

import azimuth.planner.Strategy;

/**
 * {@code azimuth-shuffled}: a seeded shuffle of the members, rotated from topic to topic, claims kept.
 *
 * <p>On the broker: {@code group.consumer.assignors=azimuth.broker.ShuffledAssignor,uniform,range}. In a consumer:
 * {@code group.protocol=consumer} and {@code group.remote.assignor=azimuth-shuffled}.
 */
public final class ShuffledAssignor extends AzimuthAssignor {
    /** Made by the broker. */
    public ShuffledAssignor() {
        super(Strategy.SHUFFLED);
    }

    @Override
    public String name() {
        return "azimuth-shuffled";
    }
}
