package azimuth.clients;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The part of a member's configuration that the leader must know, as Python's assignors send it.
 *
 * <p>JSON: {@code {"azimuth":1,"agent":...,"weight":...,"plan":...}}. Only a member with {@code agent} or a weight sends
 * it, because user data keeps a broker from migrating the group online (KIP-848). Other content belongs to another
 * assignor.
 *
 * @param agent identity that survives a restart; null if the group instance id or the member id is the identity
 * @param weight capacity relative to the other members
 */
record UserData(String agent, double weight) {
    static final UserData NONE = new UserData(null, 1);
    private static final int MOST_BYTES = 4096;

    /** The bytes to send; null where the leader needs neither the agent nor the weight. */
    ByteBuffer encode() {
        if (agent == null) {
            return null;
        }
        StringBuilder text = new StringBuilder("{\"azimuth\":1,\"agent\":\"");
        for (char c : agent.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ' || c > '~') {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return StandardCharsets.US_ASCII.encode(CharBuffer.wrap(text.append("\",\"weight\":1.0,\"plan\":null}")));
    }

    /** Reads user data; null if it belongs to another assignor, or is none of ours. */
    static UserData decode(ByteBuffer raw) {
        if (raw == null || !raw.hasRemaining()) {
            return NONE;
        }
        if (raw.remaining() > MOST_BYTES) {
            return null;
        }
        try {
            Map<String, Object> content = new Reader(StandardCharsets.UTF_8.newDecoder().decode(raw.duplicate())).object();
            boolean ours = Double.valueOf(1).equals(content.get("azimuth")) && content.containsKey("plan");
            Object agent = content.get("agent");
            // JSON may contain half of a surrogate pair, which has no bytes to hash; Python's leader does not read it either.
            boolean encodable = StandardCharsets.UTF_8.newEncoder().canEncode(agent + " " + content.get("plan"));
            if (ours && encodable && (agent == null ? content.containsKey("agent") : agent instanceof String)
                    && content.get("weight") instanceof Double weight && weight > 0 && Double.isFinite(weight)) {
                return new UserData((String) agent, weight);
            }
        } catch (CharacterCodingException | RuntimeException error) {
            // content of another assignor
        }
        return null;
    }

    /** Reads a flat JSON object of texts, numbers and null. */
    private record Reader(CharBuffer text) {
        Map<String, Object> object() {
            Map<String, Object> out = new HashMap<>();
            expect('{');
            do {
                String key = string();
                expect(':');
                out.put(key, value());
            } while (next() == ',');
            if (text.get(text.position() - 1) != '}') {
                throw new IllegalArgumentException("no end");
            }
            return out;
        }

        private char next() {
            char c = text.get();
            return c == ' ' || c == '\n' || c == '\r' || c == '\t' ? next() : c;
        }

        private void expect(char wanted) {
            if (next() != wanted) {
                throw new IllegalArgumentException("need " + wanted);
            }
        }

        private Object value() {
            char first = next();
            text.position(text.position() - 1);
            if (first == '"') {
                return string();
            }
            StringBuilder word = new StringBuilder();
            while ("+-.eE".indexOf(text.charAt(0)) >= 0 || Character.isLetterOrDigit(text.charAt(0))) {
                word.append(text.get());
            }
            return word.toString().equals("null") ? null : Double.valueOf(word.toString());
        }

        private String string() {
            expect('"');
            StringBuilder out = new StringBuilder();
            for (char c = text.get(); c != '"'; c = text.get()) {
                out.append(c == '\\' ? escaped() : c);
            }
            return out.toString();
        }

        private char escaped() {
            char c = text.get();
            if (c != 'u') {
                return "bfnrt".indexOf(c) < 0 ? c : "\b\f\n\r\t".charAt("bfnrt".indexOf(c));
            }
            char[] digits = new char[4];
            text.get(digits);
            return (char) Integer.parseInt(new String(digits), 16);
        }
    }
}
