package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A property that is spelled wrong stops the broker at its start, not a group at night. */
class SettingsTest {
    @Test
    void otherPropertiesOfTheBrokerAreNotRead() {
        assertEquals(Settings.DEFAULT, Settings.read(Map.of("node.id", "1", "ssl.key.password", "secret")));
    }

    @Test
    void aTopicsOwnCapWins() {
        Uuid topic = new Uuid(1, 2);
        Settings settings = Settings.read(Map.of("azimuth.workers", "2", "azimuth.workers." + topic, "5"));
        assertEquals(5, settings.workersOf(topic, null));
        assertEquals(2, settings.workersOf(new Uuid(3, 4), null));
    }

    @Test
    void aTopicsIdCountsBeforeItsNameAndItsNameBeforeTheNumberForAll() {
        Uuid topic = new Uuid(1, 2);
        Settings settings = Settings.read(Map.of(
                "azimuth.workers", "2", "azimuth.workers." + topic, "5", "azimuth.workers.by.name", "flights\\..*=3"));
        assertEquals(5, settings.workersOf(topic, "flights.JFK"));
        assertEquals(3, settings.workersOf(new Uuid(3, 4), "flights.JFK"));
        assertEquals(2, settings.workersOf(new Uuid(3, 4), "orders"));
        assertEquals(2, settings.workersOf(new Uuid(3, 4), null));
    }

    @Test
    void allIsNoCapForEveryProperty() {
        Uuid topic = new Uuid(1, 2);
        assertEquals(Planner.NO_CAP, Settings.read(Map.of("azimuth.workers", "all")).workersOf(topic, "flights"));
        Settings settings = Settings.read(Map.of("azimuth.workers", "2", "azimuth.workers." + topic, "all"));
        assertEquals(Planner.NO_CAP, settings.workersOf(topic, "flights"));
        assertEquals(2, settings.workersOf(new Uuid(3, 4), "flights"));
    }

    @ParameterizedTest
    @CsvSource({
        "azimuth.workers, 0", "azimuth.workers, two", "azimuth.workers.flights, 2", "azimuth.epsilon, -1",
        "azimuth.epsilon, NaN", "azimuth.seed, 4294967296", "azimuth.worker, 2", "azimuth.workers.by.name, flights"
    })
    void aWrongPropertyIsNamed(String name, String value) {
        ConfigException error = assertThrows(ConfigException.class, () -> Settings.read(Map.of(name, value)));
        assertTrue(error.getMessage().contains(name), error.getMessage());
    }
}
