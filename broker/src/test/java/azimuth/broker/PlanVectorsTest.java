package azimuth.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.GZIPInputStream;
import org.apache.kafka.common.Uuid;
import org.junit.jupiter.api.Test;

/** Whole plans of Python's {@code plan()}, made again here without a difference. */
class PlanVectorsTest {
    /** Another file, of random groups, is named by a test in Python. */
    private static final String OTHER = System.getProperty("azimuth.vectors");
    private static final String FILE = OTHER == null ? "../tests/data/plan_vectors.json.gz" : OTHER;
    private static final int LEAST = OTHER == null ? 2_000 : 1;

    @Test
    void everyPlanIsTheOneThatPythonMakes() throws IOException {
        JsonNode vectors;
        try (InputStream file = new GZIPInputStream(new FileInputStream(FILE))) {
            vectors = new ObjectMapper().readTree(file);
        }
        int replayed = 0;
        List<Integer> different = new ArrayList<>();
        for (JsonNode each : vectors.get("cases")) {
            if (!owners(each, vectors.get("ids")).equals(each.get("owners").toString())) {
                different.add(replayed);
            }
            replayed++;
        }
        assertEquals(List.of(), different, () -> "cases with another plan: " + different.size());
        assertTrue(replayed >= LEAST, () -> "the file lost its cases");
    }

    private static String owners(JsonNode each, JsonNode ids) {
        List<Uuid> topics = new ArrayList<>();
        each.get("topics").forEach(topic -> topics.add(Uuid.fromString(ids.get(topic.get(0).asInt()).asText())));
        GroupOf group = read(each, topics);
        AzimuthAssignor assignor = each.get("strategy").asText().equals("hrw") ? new HrwAssignor() : new ShuffledAssignor();
        Map<String, Object> properties = new HashMap<>();
        properties.put("azimuth.epsilon", each.get("epsilon"));
        properties.put("azimuth.seed", each.get("seed").asText());
        for (int t = 0; t < each.get("workers").size(); t++) {
            if (!each.get("workers").get(t).isNull()) {
                properties.put("azimuth.workers." + topics.get(t), each.get("workers").get(t).asText());
            }
        }
        assignor.configure(properties);
        int[][] owners = new int[topics.size()][];
        for (int t = 0; t < owners.length; t++) {
            owners[t] = new int[group.topics.get(topics.get(t))];
            Arrays.fill(owners[t], -1);
        }
        List<String> members = List.copyOf(group.members.keySet());
        assignor.assign(group, group).members().forEach((member, given) -> given.partitions().forEach(
                (topic, mine) -> mine.forEach(p -> owners[topics.indexOf(topic)][p] = members.indexOf(member))));
        return Arrays.deepToString(owners).replace(" ", "");
    }

    private static GroupOf read(JsonNode each, List<Uuid> topics) {
        GroupOf group = new GroupOf();
        for (int t = 0; t < topics.size(); t++) {
            group.topics.put(topics.get(t), each.get("topics").get(t).get(1).asInt());
            if (!each.get("racks").isNull()) {
                List<Set<String>> racks = new ArrayList<>();
                each.get("racks").get(t).forEach(set -> {
                    Set<String> names = new HashSet<>();
                    set.forEach(rack -> names.add(rack.asText()));
                    racks.add(names);
                });
                group.racks.put(topics.get(t), racks);
            }
        }
        List<GroupOf.Member> members = new ArrayList<>();
        for (JsonNode member : each.get("members")) {
            Set<Uuid> wanted = new HashSet<>(member.get(3).isNull() ? topics : List.of());
            member.get(3).forEach(t -> wanted.add(topics.get(t.asInt())));
            members.add(new GroupOf.Member(text(member.get(2)), text(member.get(1)), wanted));
            group.members.put(member.get(0).asText(), members.get(members.size() - 1));
        }
        each.get("claims").forEach(
                claim -> members.get(claim.get(0).asInt()).claim(topics.get(claim.get(1).asInt()), claim.get(2).asInt()));
        return group;
    }

    private static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }
}
