package azimuth.planner;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;

/**
 * Properties that begin with {@code azimuth.}: a broker's hold for all of its groups, a consumer's for its group.
 *
 * @param epsilon allowed distance of a load from the fair share
 * @param seed another seed, another ranking
 * @param workers most members of a topic; {@link Integer#MAX_VALUE} for all
 * @param workersOf most members of a topic by its id, before all others
 * @param workersByName most members of a topic by its name or a pattern, before {@code workers}
 */
public record Settings(double epsilon, int seed, int workers, Map<Uuid, Integer> workersOf, WorkerCaps workersByName) {
    /** Name of a property. */
    public static final String EPSILON = "azimuth.epsilon";
    /** Name of a property. */
    public static final String SEED = "azimuth.seed";
    /** Name of a property. */
    public static final String WORKERS = "azimuth.workers";
    /** Name of a property. */
    public static final String WORKERS_BY_NAME = "azimuth.workers.by.name";
    /** Where no property is set. */
    public static final Settings DEFAULT = new Settings(0.05, 0, Planner.NO_CAP, Map.of(), WorkerCaps.NONE);

    private static final double LOOSEST = 1e9;

    /**
     * Reads the properties.
     *
     * @throws ConfigException a value is out of range, or no property of ours has this name; the process does not start
     */
    public static Settings read(Map<String, ?> properties) {
        double epsilon = DEFAULT.epsilon;
        int seed = DEFAULT.seed;
        int workers = DEFAULT.workers;
        Map<Uuid, Integer> workersOf = new HashMap<>();
        WorkerCaps byName = DEFAULT.workersByName;
        for (Map.Entry<String, ?> property : properties.entrySet()) {
            String name = property.getKey();
            if (!name.startsWith("azimuth.")) {
                continue;
            }
            String value = String.valueOf(property.getValue()).trim();
            if (name.equals(EPSILON)) {
                epsilon = readEpsilon(value);
            } else if (name.equals(SEED)) {
                seed = (int) readWhole(name, value, 0, 0xFFFFFFFFL);
            } else if (name.equals(WORKERS)) {
                workers = readCap(name, value);
            } else if (name.equals(WORKERS_BY_NAME)) {
                byName = readCaps(value);
            } else if (name.startsWith(WORKERS + ".")) {
                workersOf.put(readTopic(name), readCap(name, value));
            } else {
                throw new ConfigException(name + " is no property of azimuth's assignors: they have " + EPSILON + ", " + SEED
                        + ", " + WORKERS + ", " + WORKERS_BY_NAME + " and " + WORKERS + ".<topic id>");
            }
        }
        return new Settings(epsilon, seed, workers, Map.copyOf(workersOf), byName);
    }

    /** Most members of a topic; its name is null where it is not known. */
    public int workersOf(Uuid topic, String name) {
        Integer cap = workersOf.get(topic);
        return cap != null ? cap : name == null ? workers : workersByName.of(name, workers);
    }

    private static int readCap(String name, String value) {
        try {
            return WorkerCaps.number(value);
        } catch (IllegalArgumentException error) {
            throw new ConfigException(name, value, error.getMessage());
        }
    }

    private static WorkerCaps readCaps(String value) {
        try {
            return WorkerCaps.read(value);
        } catch (IllegalArgumentException error) {
            throw new ConfigException(WORKERS_BY_NAME + ": " + error.getMessage());
        }
    }

    private static double readEpsilon(String value) {
        try {
            double epsilon = Double.parseDouble(value);
            if (epsilon >= 0 && Double.isFinite(epsilon)) {
                return Math.min(epsilon, LOOSEST);
            }
        } catch (NumberFormatException error) {
            // the same answer as for a number out of range
        }
        throw new ConfigException(EPSILON, value, "need a finite number, 0 or more");
    }

    private static long readWhole(String name, String value, long least, long most) {
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException error) {
            // the same answer as for a number out of range
        }
        throw new ConfigException(name, value, "need a whole number from " + least + " to " + most);
    }

    private static Uuid readTopic(String name) {
        String id = name.substring(WORKERS.length() + 1);
        try {
            return Uuid.fromString(id);
        } catch (IllegalArgumentException error) {
            throw new ConfigException(name + ": " + id + " is no topic id (" + WORKERS_BY_NAME + " takes names; "
                    + "kafka-topics.sh --describe prints them)");
        }
    }
}
