package azimuth.broker;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * A consumer group as arrays: topics and members in one fixed order, claims checked.
 *
 * <p>Topics stand in the order of their ids' text and members in that of their identity, then id; both by code point,
 * as Python sorts. Partitions are numbered through, topic by topic. What the broker names and the cluster does not
 * have is left out: topics without partitions, claims on partitions that do not exist or that two members claim.
 */
final class Group {
    static final int NOBODY = -1;
    private static final int VOID = -2;

    /** Topics that have partitions and a subscriber. */
    final Uuid[] topics;
    /** Hash of each topic id's text, mixed for pairs. */
    final long[] keys;
    /** Number of the first partition of each topic, and at the end how many there are. */
    final int[] first;
    /** Topic of each partition. */
    final int[] topicOf;

    /** Member ids. */
    final String[] members;
    /** Hash of each member's identity. */
    final long[] hashes;
    /** Node of each member, and how many nodes there are. */
    final int[] nodeOf;
    final int nodes;

    /** Topics that each member reads; equal subscriptions are one object. */
    final BitSet[] reads;
    /** Whether all members read all topics. */
    final boolean equal;

    /** Member with a valid claim on each partition, or NOBODY. */
    final int[] owner;
    /** Members whose former assignment is exactly their valid claims: it can be handed back as it is. */
    final boolean[] intact;
    /** Number of each partition's set of racks; 0 is unknown. */
    final int[] racksOf;
    /** Whether a member's known rack is in none of a known set; by set, then member. */
    final boolean[][] off;

    Group(GroupSpec spec, SubscribedTopicDescriber cluster, int seed) {
        Roster[] roster = readMembers(spec);
        int count = roster.length;
        members = new String[count];
        hashes = new long[count];
        nodeOf = new int[count];
        nodes = nameMembers(roster, seed);

        List<Set<Uuid>> subscriptions = subscriptions(spec, roster);
        Map<Uuid, Integer> sizes = new LinkedHashMap<>();
        for (Set<Uuid> subscription : subscriptions) {
            for (Uuid topic : subscription) {
                if (topic != null && !sizes.containsKey(topic)) {
                    sizes.put(topic, cluster.numPartitions(topic));
                }
            }
        }
        sizes.values().removeIf(size -> size <= 0);
        String[] names = new String[sizes.size()];
        topics = new Uuid[names.length];
        sortTopics(sizes.keySet(), names);
        keys = new long[names.length];
        first = new int[names.length + 1];
        Map<Uuid, Integer> places = new HashMap<>(2 * names.length);
        for (int t = 0; t < names.length; t++) {
            keys[t] = Hash.mix(Hash.name(names[t], seed) + Hash.GOLDEN);
            first[t + 1] = first[t] + sizes.get(topics[t]);
            places.put(topics[t], t);
        }
        topicOf = new int[partitions()];
        for (int t = 0; t < names.length; t++) {
            Arrays.fill(topicOf, first[t], first[t + 1], t);
        }

        reads = new BitSet[count];
        equal = readSubscriptions(subscriptions, places);
        owner = new int[partitions()];
        intact = new boolean[count];
        readClaims(spec, places);
        racksOf = new int[partitions()];
        off = readRacks(roster, cluster);
    }

    int partitions() {
        return first[first.length - 1];
    }

    int size(int topic) {
        return first[topic + 1] - first[topic];
    }

    /** Writes the preference of every member for a topic by rendezvous hashing; the highest, unsigned, is the first. */
    void rank(int topic, long[] scores) {
        long key = keys[topic];
        for (int m = 0; m < scores.length; m++) {
            scores[m] = Hash.mix(hashes[m] ^ key);
        }
    }

    /** Whether some member is known to be away from some partition. */
    boolean anyOff() {
        for (boolean[] set : off) {
            for (boolean away : set) {
                if (away) {
                    return true;
                }
            }
        }
        return false;
    }

    private record Roster(String id, String identity, String rack, MemberSubscription subscription) {}

    private static Roster[] readMembers(GroupSpec spec) {
        Collection<String> ids = spec.memberIds();
        List<Roster> found = new ArrayList<>(ids.size());
        for (String id : ids) {
            MemberSubscription subscription = spec.memberSubscription(id);
            String instance = subscription.instanceId().orElse("");
            String rack = subscription.rackId().orElse(null);
            found.add(new Roster(id, instance.isEmpty() ? id : instance, rack, subscription));
        }
        Roster[] sorted = found.toArray(new Roster[0]);
        Arrays.sort(sorted, Comparator.comparing(Roster::identity, Group::compareCodePoints)
                .thenComparing(Roster::id, Group::compareCodePoints));
        return sorted;
    }

    /** Compares as Python does: Java's own order puts characters beyond the first 65,536 before U+E000. */
    static int compareCodePoints(String one, String two) {
        int end = Math.min(one.length(), two.length());
        for (int i = 0; i < end; i++) {
            char a = one.charAt(i);
            char b = two.charAt(i);
            if (a != b) {
                boolean wide = Character.isSurrogate(a);
                return wide == Character.isSurrogate(b) ? Character.compare(a, b) : wide ? 1 : -1;
            }
        }
        return Integer.compare(one.length(), two.length());
    }

    private int nameMembers(Roster[] roster, int seed) {
        Map<String, Integer> numbers = new HashMap<>();
        String before = null;
        for (int m = 0; m < roster.length; m++) {
            String identity = roster[m].identity();
            members[m] = roster[m].id();
            // Two members of one identity must not rank alike.
            hashes[m] = Hash.name(identity.equals(before) ? identity + '\0' + members[m] : identity, seed);
            before = identity;
            nodeOf[m] = numbers.computeIfAbsent(Nodes.of(identity), name -> numbers.size());
        }
        return numbers.size();
    }

    private static List<Set<Uuid>> subscriptions(GroupSpec spec, Roster[] roster) {
        List<Set<Uuid>> found = new ArrayList<>(roster.length);
        boolean alike = spec.subscriptionType() == SubscriptionType.HOMOGENEOUS;
        for (Roster member : roster) {
            found.add(member.subscription().subscribedTopicIds());
            // A check that costs little: sets of other sizes are not the same, whatever the group is called.
            alike = alike && found.get(found.size() - 1).size() == found.get(0).size();
        }
        return alike && !found.isEmpty() ? found.subList(0, 1) : found;
    }

    private void sortTopics(Set<Uuid> ids, String[] names) {
        record Named(String name, Uuid id) {}
        Named[] sorted = ids.stream().map(id -> new Named(id.toString(), id)).toArray(Named[]::new);
        Arrays.sort(sorted, Comparator.comparing(Named::name));
        for (int t = 0; t < sorted.length; t++) {
            names[t] = sorted[t].name();
            topics[t] = sorted[t].id();
        }
    }

    private boolean readSubscriptions(List<Set<Uuid>> subscriptions, Map<Uuid, Integer> places) {
        if (subscriptions.size() == 1) {
            BitSet all = new BitSet();
            all.set(0, topics.length);
            Arrays.fill(reads, all);
            return true;
        }
        Map<BitSet, BitSet> known = new HashMap<>();
        for (int m = 0; m < reads.length; m++) {
            BitSet mine = new BitSet(topics.length);
            for (Uuid topic : subscriptions.get(m)) {
                Integer place = places.get(topic);
                if (place != null) {
                    mine.set(place);
                }
            }
            reads[m] = known.computeIfAbsent(mine, same -> same);
        }
        return known.size() <= 1;
    }

    private void readClaims(GroupSpec spec, Map<Uuid, Integer> places) {
        Arrays.fill(owner, NOBODY);
        int[] claimed = new int[members.length];
        for (int m = 0; m < members.length; m++) {
            for (Map.Entry<Uuid, Set<Integer>> claim : spec.memberAssignment(members[m]).partitions().entrySet()) {
                claimed[m] += claim.getValue().size();
                Integer topic = places.get(claim.getKey());
                if (topic == null) {
                    continue;
                }
                int size = size(topic);
                for (int partition : claim.getValue()) {
                    if (partition >= 0 && partition < size) {
                        int at = first[topic] + partition;
                        owner[at] = owner[at] == NOBODY ? m : VOID;
                    }
                }
            }
        }
        for (int p = 0; p < owner.length; p++) {
            int m = owner[p];
            if (m == VOID || m >= 0 && !reads[m].get(topicOf[p])) {
                owner[p] = NOBODY;
            } else if (m >= 0) {
                claimed[m]--;
            }
        }
        for (int m = 0; m < members.length; m++) {
            intact[m] = claimed[m] == 0;
        }
    }

    private boolean[][] readRacks(Roster[] roster, SubscribedTopicDescriber cluster) {
        boolean some = false;
        for (Roster member : roster) {
            some |= member.rack() != null;
        }
        Map<Set<String>, Integer> numbers = new LinkedHashMap<>();
        numbers.put(Set.of(), 0);
        if (some) {
            for (int p = 0; p < racksOf.length; p++) {
                Uuid topic = topics[topicOf[p]];
                Set<String> racks = cluster.racksForPartition(topic, p - first[topicOf[p]]);
                racksOf[p] = racks == null ? 0 : numbers.computeIfAbsent(racks, set -> numbers.size());
            }
        }
        boolean[][] away = new boolean[numbers.size()][roster.length];
        numbers.forEach((racks, number) -> {
            for (int m = 0; m < roster.length; m++) {
                String rack = roster[m].rack();
                away[number][m] = !racks.isEmpty() && rack != null && !racks.contains(rack);
            }
        });
        return away;
    }
}
