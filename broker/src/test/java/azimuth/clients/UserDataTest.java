package azimuth.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What Python's members send is read, and what they would not read is not sent. */
class UserDataTest {
    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void whatPythonSendsIsRead() {
        String sent = "{\"azimuth\":1,\"agent\":\"z\\u00fcrich \\\"1\\\"\\n\",\"weight\":2.5,\"plan\":\"workers=2\"}";
        assertEquals(new UserData("zürich \"1\"\n", 2.5), UserData.decode(bytes(sent)));
        assertEquals(new UserData(null, 2), UserData.decode(bytes("{\"azimuth\":1,\"agent\":null,\"weight\":2.0,\"plan\":null}")));
    }

    @Test
    void onlyAnAgentIsSentAndComesBackAsItWas() {
        assertNull(UserData.NONE.encode());
        UserData sent = new UserData("zürich \"1\"\\\n\uD83D\uDC0E", 1);
        assertEquals(sent, UserData.decode(sent.encode()));
        assertEquals(UserData.NONE, UserData.decode(null));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{", "{}", "[1]", "null", "\u0001\u0002", "{\"azimuth\":2,\"agent\":null,\"weight\":1.0,\"plan\":null}",
        "{\"azimuth\":1,\"agent\":3,\"weight\":1.0,\"plan\":null}", "{\"azimuth\":1,\"agent\":null,\"weight\":-1.0,\"plan\":null}",
        "{\"azimuth\":1,\"agent\":null,\"weight\":\"1\",\"plan\":null}", "{\"azimuth\":1,\"agent\":\"a\\ud800"
    })
    void contentOfAnotherAssignorIsNone(String text) {
        assertNull(UserData.decode(bytes(text)));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{\"azimuth\":1,\"agent\":\"a\\ud800\",\"weight\":1.0,\"plan\":null}", "{\"azimuth\":1,\"agent\":\"a\",\"weight\":1.0,\"plan\":\"\\udc0e\"}",
        "{\"azimuth\":1,\"agent\":\"\\ud83d\",\"weight\":1.0,\"plan\":\"\\udc0e\"}"
    })
    void halfOfASurrogatePairIsNoneAsInPython(String text) {
        assertNull(UserData.decode(bytes(text)));
    }

    @Test
    void noBytesThrow() {
        Random dice = new Random(1);
        byte[] whole = new UserData("agent-1", 1).encode().array();
        for (int i = 0; i < 20_000; i++) {
            byte[] bytes = whole.clone();
            for (int n = dice.nextInt(4); n >= 0; n--) {
                bytes[dice.nextInt(bytes.length)] = (byte) dice.nextInt();
            }
            UserData.decode(ByteBuffer.wrap(bytes, 0, dice.nextInt(bytes.length)));
        }
    }
}
