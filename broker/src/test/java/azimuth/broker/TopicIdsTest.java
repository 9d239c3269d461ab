package azimuth.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.junit.jupiter.api.Test;

/** The text of a topic id ranks the topic: another text would give its partitions to other members. */
class TopicIdsTest {
    private static void check(long high, long low) {
        Uuid topic = new Uuid(high, low);
        assertEquals(topic.toString(), new String(TopicIds.text(topic), StandardCharsets.US_ASCII));
    }

    @Test
    void theTextIsTheOneThatKafkaWrites() {
        Random dice = new Random(1);
        for (int i = 0; i < 10_000; i++) {
            check(dice.nextLong(), dice.nextLong());
        }
    }

    @Test
    void eachBitStandsWhereKafkaWritesIt() {
        for (int bit = 0; bit < Long.SIZE; bit++) {
            check(1L << bit, 0);
            check(0, 1L << bit);
            check(~(1L << bit), -1);
            check(-1, ~(1L << bit));
        }
    }
}
