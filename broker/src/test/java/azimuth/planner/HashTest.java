package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/** The hash gives the bits that Python gives, so both name the same owner. */
class HashTest {
    private static JsonNode vectors(String kind) throws IOException {
        JsonNode found = new ObjectMapper().readTree(new File("../tests/data/hash_vectors.json")).get(kind);
        assertTrue(found.size() > 0, kind);
        return found;
    }

    private static long hexadecimal(JsonNode text) {
        return Long.parseUnsignedLong(text.asText(), 16);
    }

    @Test
    void namesHashAsPublished() throws IOException {
        for (JsonNode v : vectors("name")) {
            assertEquals(hexadecimal(v.get("hash")), Hash.name(v.get("name").asText(), (int) v.get("seed").asLong()), v.toString());
        }
    }

    @Test
    void theMixerMixesAsPublished() throws IOException {
        for (JsonNode v : vectors("mix")) {
            assertEquals(hexadecimal(v.get("mixed")), Hash.mix(hexadecimal(v.get("value"))), v.toString());
        }
    }

    @Test
    void pairsHashAsPublished() throws IOException {
        for (JsonNode v : vectors("pair")) {
            int seed = (int) v.get("seed").asLong();
            long pair = Hash.pair(Hash.name(v.get("node").asText(), seed), Hash.name(v.get("key").asText(), seed));
            assertEquals(hexadecimal(v.get("pair")), pair, v.toString());
        }
    }
}
