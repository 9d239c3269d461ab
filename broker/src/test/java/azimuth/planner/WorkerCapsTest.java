package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Caps by name and pattern: the meaning of Python's mapping, in one line of properties. */
class WorkerCapsTest {
    @Test
    void aNameCountsBeforePatternsAndTheFirstPatternThatMatchesTheWholeNameCounts() {
        WorkerCaps caps = WorkerCaps.read("flights\\..*=2 flights.JFK=7 .*\\.raw|audit-.*=1 *=3 log.all=all");
        assertEquals(2, caps.of("flights.LAX", 9));
        assertEquals(7, caps.of("flights.JFK", 9));
        assertEquals(1, caps.of("orders.raw", 9));
        assertEquals(3, caps.of("orders.raw.old", 9));
        assertEquals(Planner.NO_CAP, caps.of("log.all", 9));
    }

    @Test
    void aTopicThatNoKeyNamesHasTheCapOfAll() {
        assertEquals(9, WorkerCaps.read("flights=2").of("flights.JFK", 9));
        assertEquals(9, WorkerCaps.NONE.of("flights", 9));
    }

    @ParameterizedTest
    @ValueSource(strings = {"flights", "flights=0", "flights=two", "=2", "(=2"})
    void anEntryThatIsNoneIsNamed(String text) {
        IllegalArgumentException error = assertThrows(IllegalArgumentException.class, () -> WorkerCaps.read("a=1 " + text));
        assertTrue(error.getMessage().contains(text.replaceAll("=2$", "")), error.getMessage());
    }

    /** Read as one pattern, which no topic's name can match, so no topic would have the cap. */
    @ParameterizedTest
    @ValueSource(strings = {"flights=2,audit=1", "flights\\..*=2;audit=1", "flights=all,audit=1", "flights=2,audit=1,*=3"})
    void entriesThatAreNotSeparatedBySpacesAreRefused(String text) {
        IllegalArgumentException error = assertThrows(IllegalArgumentException.class, () -> WorkerCaps.read(text));
        assertEquals(text + ": separate the entries by spaces", error.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"flights", "flights\\..*", "*"})
    void aKeyWithTwoEntriesIsRefused(String key) {
        String text = key + "=2 " + key + "=3";
        IllegalArgumentException error = assertThrows(IllegalArgumentException.class, () -> WorkerCaps.read(text));
        assertEquals(key + "=3: " + key + " has an entry already", error.getMessage());
    }

    @Test
    void aPatternMayHaveCommasAndALookahead() {
        WorkerCaps caps = WorkerCaps.read("(?=f)[a-z]{2,7}=2");
        assertEquals(2, caps.of("flights", 9));
        assertEquals(9, caps.of("orders", 9));
    }
}
