package azimuth.broker;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.Uuid;

/** Writes topic ids as {@link Uuid#toString} does, without a string: a plan writes the ids of all topics. */
final class TopicIds {
    private static final byte[] DIGITS =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".getBytes(StandardCharsets.US_ASCII);
    private static final int LENGTH = 22;
    private static final int IN_HIGH = 10; // digits of six bits that lie within the high 64 bits; the next has the last four

    private TopicIds() {}

    /** The id in Base64 for URLs, without padding. */
    static byte[] text(Uuid topic) {
        long high = topic.getMostSignificantBits();
        long low = topic.getLeastSignificantBits();
        byte[] text = new byte[LENGTH];
        for (int i = 0; i < IN_HIGH; i++) {
            text[i] = DIGITS[(int) (high >>> 58 - 6 * i) & 63];
        }
        text[IN_HIGH] = DIGITS[(int) (high << 2 | low >>> 62) & 63];
        for (int i = IN_HIGH + 1; i < LENGTH - 1; i++) {
            text[i] = DIGITS[(int) (low >>> 56 - 6 * (i - IN_HIGH - 1)) & 63];
        }
        text[LENGTH - 1] = DIGITS[(int) (low << 4) & 63];
        return text;
    }
}
