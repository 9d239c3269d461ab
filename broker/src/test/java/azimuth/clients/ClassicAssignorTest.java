package azimuth.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.zip.GZIPInputStream;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Python's whole plans, made again by a leader of the classic protocol in Java. */
class ClassicAssignorTest {
    private static final List<String> RACKS = List.of("az-a", "az-b", "az-c");
    private static final Node[] NODES = RACKS.stream().map(rack -> new Node(RACKS.indexOf(rack), "h", 1, rack)).toArray(Node[]::new);

    private static JsonNode vectors;

    @BeforeAll
    static void readVectors() throws IOException {
        try (InputStream file = new GZIPInputStream(new FileInputStream("../tests/data/plan_vectors.json.gz"))) {
            vectors = new ObjectMapper().readTree(file);
        }
    }

    /** A case of the file as a leader sees it. */
    private static final class Case {
        final JsonNode of;
        final List<String> topics = new ArrayList<>();
        final Map<String, Subscription> members = new LinkedHashMap<>();
        final Cluster cluster;

        Case(JsonNode of) {
            this.of = of;
            List<PartitionInfo> partitions = new ArrayList<>();
            for (JsonNode topic : of.get("topics")) {
                topics.add(vectors.get("ids").get(topic.get(0).asInt()).asText());
                for (int p = 0; p < topic.get(1).asInt(); p++) {
                    partitions.add(new PartitionInfo(topics.get(topics.size() - 1), p, null, replicas(p), new Node[0]));
                }
            }
            cluster = new Cluster("c", List.of(NODES), partitions, Set.of(), Set.of());
            List<List<TopicPartition>> claims = new ArrayList<>();
            of.get("members").forEach(member -> claims.add(new ArrayList<>()));
            of.get("claims").forEach(claim -> claims.get(claim.get(0).asInt())
                    .add(new TopicPartition(topics.get(claim.get(1).asInt()), claim.get(2).asInt())));
            for (JsonNode member : of.get("members")) {
                List<String> wanted = new ArrayList<>(member.get(3).isNull() ? topics : List.of());
                member.get(3).forEach(t -> wanted.add(topics.get(t.asInt())));
                Optional<String> rack = member.get(2).isNull() ? Optional.empty() : Optional.of(member.get(2).asText());
                Subscription subscription = new Subscription(wanted, null, claims.get(members.size()), 5, rack);
                subscription.setGroupInstanceId(member.get(1).isNull() ? Optional.empty() : Optional.of(member.get(1).asText()));
                members.put(member.get(0).asText(), subscription);
            }
        }

        private Node[] replicas(int partition) {
            if (of.get("racks").isNull()) {
                return new Node[0];
            }
            List<Node> found = new ArrayList<>();
            of.get("racks").get(topics.size() - 1).get(partition).forEach(rack -> found.add(NODES[RACKS.indexOf(rack.asText())]));
            return found.toArray(new Node[0]);
        }

        ClassicAssignor assignor(boolean cooperative) {
            boolean hrw = of.get("strategy").asText().equals("hrw");
            ClassicAssignor assignor = hrw ? cooperative ? new HrwCooperativeAssignor() : new HrwAssignor()
                    : cooperative ? new ShuffledCooperativeAssignor() : new ShuffledAssignor();
            StringBuilder caps = new StringBuilder();
            for (int t = 0; t < of.get("workers").size(); t++) {
                JsonNode cap = of.get("workers").get(t);
                caps.append(topics.get(t)).append('=').append(cap.isNull() ? "all" : cap.asText()).append(' ');
            }
            assignor.configure(Map.of("azimuth.epsilon", of.get("epsilon").asText(), "azimuth.seed", of.get("seed").asText(),
                    "azimuth.workers.by.name", caps.toString(), "client.id", "test"));
            return assignor;
        }

        Map<String, Assignment> assign(boolean cooperative) {
            return assignor(cooperative).assign(cluster, new GroupSubscription(members)).groupAssignment();
        }

        /** A shuffled plan of a client has exact balance and no caps. */
        boolean isOfClients() {
            return of.get("strategy").asText().equals("hrw") || of.get("epsilon").asDouble() == 0 && of.get("workers").isNull();
        }

        Map<TopicPartition, String> expected() {
            List<String> names = List.copyOf(members.keySet());
            Map<TopicPartition, String> owners = new HashMap<>();
            for (int t = 0; t < topics.size(); t++) {
                for (int p = 0; p < of.get("owners").get(t).size(); p++) {
                    int owner = of.get("owners").get(t).get(p).asInt();
                    if (owner >= 0) {
                        owners.put(new TopicPartition(topics.get(t), p), names.get(owner));
                    }
                }
            }
            return owners;
        }
    }

    private static Map<TopicPartition, String> owners(Map<String, Assignment> given) {
        Map<TopicPartition, String> owners = new HashMap<>();
        given.forEach((member, mine) -> mine.partitions().forEach(
                partition -> assertEquals(null, owners.put(partition, member), "given twice")));
        return owners;
    }

    @Test
    void anEagerLeaderMakesPythonsPlan() {
        int replayed = 0;
        for (JsonNode each : vectors.get("cases")) {
            Case one = new Case(each);
            if (one.isOfClients()) {
                assertEquals(one.expected(), owners(one.assign(false)), () -> "case " + each);
                replayed++;
            }
        }
        assertTrue(replayed >= 1_500, "too few cases: " + replayed);
    }

    @Test
    void aCooperativeLeaderGivesNothingThatAnotherMayStillReadAndAllInTheNextRound() {
        for (JsonNode each : vectors.get("cases")) {
            Case one = new Case(each);
            if (!one.of.get("workers").isNull() || !one.isOfClients()) {
                continue;
            }
            Map<String, Assignment> first = one.assign(true);
            Set<TopicPartition> added = new HashSet<>();
            Set<TopicPartition> revoked = new HashSet<>();
            one.members.forEach((member, subscription) -> {
                Set<TopicPartition> mine = new HashSet<>(first.get(member).partitions());
                Set<TopicPartition> claimed = new HashSet<>(subscription.ownedPartitions());
                mine.stream().filter(partition -> !claimed.contains(partition)).forEach(added::add);
                claimed.stream().filter(partition -> !mine.contains(partition)).forEach(revoked::add);
            });
            added.retainAll(revoked);
            assertEquals(Set.of(), added, () -> "Java's consumer refuses such an assignment: " + each);
            one.members.replaceAll((member, before) -> {
                Subscription claims = new Subscription(before.topics(), null, first.get(member).partitions(), 6, before.rackId());
                claims.setGroupInstanceId(before.groupInstanceId());
                return claims;
            });
            assertEquals(one.expected().keySet(), owners(one.assign(true)).keySet(), () -> "case " + each);
        }
    }

    @Test
    void aMemberThatIsLateKeepsWhatItClaimsBecauseItWouldNotAskForTheNextRound() {
        List<PartitionInfo> partitions = new ArrayList<>();
        List<TopicPartition> all = new ArrayList<>();
        for (int p = 0; p < 8; p++) {
            partitions.add(new PartitionInfo("flights", p, null, new Node[0], new Node[0]));
            all.add(new TopicPartition("flights", p));
        }
        Cluster cluster = new Cluster("c", List.of(), partitions, Set.of(), Set.of());
        Map<String, Subscription> members = new TreeMap<>();
        members.put("late", new Subscription(List.of("flights"), null, all, 3, Optional.empty()));
        members.put("new", new Subscription(List.of("flights"), null, List.of(), 4, Optional.empty()));
        Map<String, Assignment> given =
                new HrwCooperativeAssignor().assign(cluster, new GroupSubscription(members)).groupAssignment();
        assertEquals(Set.copyOf(all), Set.copyOf(given.get("late").partitions()));
    }
}
