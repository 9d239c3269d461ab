package azimuth.planner;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A consumer group as arrays: topics and members in one fixed order, claims checked.
 *
 * <p>Topics stand in the order of their names and members in that of their identity, then id; both by code point,
 * as Python sorts. Partitions are numbered through, topic by topic. What members name and the cluster does not have is
 * left out: topics without partitions, claims on partitions that do not exist or that two members claim.
 */
public final class Group {
    /** No member. */
    public static final int NOBODY = -1;

    /** Hash of each topic's name, mixed for pairs. */
    final long[] keys;
    /** Number of the first partition of each topic, and at the end how many there are. */
    public final int[] first;
    /** Topic of each partition. */
    public final int[] topicOf;

    /** Member ids. */
    public final String[] members;
    /** Hash of each member's identity. */
    final long[] hashes;
    /** Node of each member, and how many nodes there are. */
    final int[] nodeOf;
    final int nodes;

    /** Topics that each member reads; equal subscriptions are one object. */
    final BitSet[] reads;
    /** Whether all members read all topics. */
    public final boolean equal;

    /** Member with a valid claim on each partition, or NOBODY. */
    public final int[] owner;
    /** Members whose former assignment is exactly their valid claims: it can be handed back as it is. */
    public final boolean[] intact;
    /** Number of each partition's set of racks; 0 is unknown. */
    final int[] racksOf;
    /** Whether a member's known rack is in none of a known set; by set, then member. */
    final boolean[][] off;

    /** What each topic is to the source. */
    private final Object[] topics;

    private <T> Group(Source<T> source, int seed) {
        List<Roster<T>> roster = readMembers(source);
        int count = roster.size();
        members = new String[count];
        hashes = new long[count];
        nodeOf = new int[count];
        nodes = nameMembers(roster, seed);

        List<Set<T>> subscriptions = subscriptions(source, roster);
        List<Named<T>> sorted = readTopics(source, subscriptions);
        topics = new Object[sorted.size()];
        keys = new long[topics.length];
        first = new int[topics.length + 1];
        for (int t = 0; t < topics.length; t++) {
            Named<T> topic = sorted.get(t);
            topics[t] = topic.topic();
            keys[t] = Hash.mix(Hash.name(topic.name(), seed) + Hash.GOLDEN);
            first[t + 1] = first[t] + topic.size();
        }
        topicOf = new int[partitions()];
        for (int t = 0; t < topics.length; t++) {
            Arrays.fill(topicOf, first[t], first[t + 1], t);
        }

        TopicNumbers numbers = new TopicNumbers(topics);
        reads = new BitSet[count];
        equal = readSubscriptions(subscriptions, numbers);
        owner = new int[partitions()];
        intact = new boolean[count];
        int[] invalid = Claims.read(source, members, first, numbers, owner, (m, topic) -> equal || reads[m].get(topic));
        for (int m = 0; m < count; m++) {
            intact[m] = invalid[m] == 0;
        }
        racksOf = new int[partitions()];
        off = readRacks(roster, source, sorted);
    }

    /**
     * Reads a group.
     *
     * @param seed of the hashes; another seed gives another ranking
     */
    public static <T> Group read(Source<T> source, int seed) {
        return new Group(source, seed);
    }

    private record Named<T>(T topic, byte[] name, int size) {}

    /** Topics that have partitions and a subscriber, in the order of their names. */
    private static <T> List<Named<T>> readTopics(Source<T> source, List<Set<T>> subscriptions) {
        Set<T> known = new HashSet<>();
        List<Named<T>> found = new ArrayList<>();
        for (Set<T> subscription : subscriptions) {
            for (T topic : subscription) {
                // The topics of one set differ from each other.
                if (topic != null && (subscriptions.size() == 1 || known.add(topic))) {
                    int size = source.partitions(topic);
                    if (size > 0) {
                        found.add(new Named<>(topic, source.name(topic), size));
                    }
                }
            }
        }
        byte[][] names = new byte[found.size()][];
        Arrays.setAll(names, i -> found.get(i).name());
        return inOrder(found, NameOrder.ascending(names, Comparator.naturalOrder()));
    }

    private static <E> List<E> inOrder(List<E> elements, int[] order) {
        List<E> out = new ArrayList<>(order.length);
        for (int i : order) {
            out.add(elements.get(i));
        }
        return out;
    }

    /** Number of topics. */
    public int topics() {
        return topics.length;
    }

    /** A topic as the source knows it. */
    public Object topic(int topic) {
        return topics[topic];
    }

    /** Number of all partitions. */
    public int partitions() {
        return first[first.length - 1];
    }

    /** Number of partitions of a topic. */
    public int size(int topic) {
        return first[topic + 1] - first[topic];
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

    private record Roster<T>(String id, String identity, byte[] name, String rack, Set<T> topics) {}

    private static <T> List<Roster<T>> readMembers(Source<T> source) {
        Collection<String> ids = source.members();
        List<Roster<T>> found = new ArrayList<>(ids.size());
        for (String id : ids) {
            String identity = source.identity(id);
            found.add(new Roster<>(id, identity, identity.getBytes(StandardCharsets.UTF_8), source.rack(id), source.topics(id)));
        }
        byte[][] names = new byte[found.size()][];
        Arrays.setAll(names, i -> found.get(i).name());
        // Half of a surrogate pair has no bytes of its own: names that differ in it are compared as text.
        Comparator<Integer> ties = Comparator.<Integer, String>comparing(i -> found.get(i).identity(), Group::compareCodePoints)
                .thenComparing(i -> found.get(i).id(), Group::compareCodePoints);
        return inOrder(found, NameOrder.ascending(names, ties));
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

    private int nameMembers(List<? extends Roster<?>> roster, int seed) {
        Map<String, Integer> numbers = new HashMap<>();
        String before = null;
        String node = null;
        for (int m = 0; m < members.length; m++) {
            String identity = roster.get(m).identity();
            members[m] = roster.get(m).id();
            // Two members of one identity must not rank alike.
            hashes[m] = identity.equals(before) ? Hash.name(identity + '\0' + members[m], seed) : Hash.name(roster.get(m).name(), seed);
            before = identity;
            // Members of one node mostly follow each other.
            String nodeBefore = node;
            node = Nodes.of(identity);
            nodeOf[m] = node.equals(nodeBefore) ? nodeOf[m - 1] : numbers.computeIfAbsent(node, name -> numbers.size());
        }
        return numbers.size();
    }

    private static <T> List<Set<T>> subscriptions(Source<T> source, List<Roster<T>> roster) {
        List<Set<T>> found = new ArrayList<>(roster.size());
        boolean alike = source.alike();
        for (Roster<T> member : roster) {
            found.add(member.topics());
            // A check that costs little: sets of other sizes are not the same, whatever the group is called.
            alike = alike && found.get(found.size() - 1).size() == found.get(0).size();
        }
        return alike && !found.isEmpty() ? found.subList(0, 1) : found;
    }

    private <T> boolean readSubscriptions(List<Set<T>> subscriptions, TopicNumbers numbers) {
        if (subscriptions.size() == 1) {
            BitSet all = new BitSet();
            all.set(0, topics.length);
            Arrays.fill(reads, all);
            return true;
        }
        Map<BitSet, BitSet> known = new HashMap<>();
        for (int m = 0; m < reads.length; m++) {
            BitSet mine = new BitSet(topics.length);
            for (T topic : subscriptions.get(m)) {
                int number = numbers.of(topic);
                if (number >= 0) {
                    mine.set(number);
                }
            }
            reads[m] = known.computeIfAbsent(mine, same -> same);
        }
        return known.size() <= 1;
    }

    private <T> boolean[][] readRacks(List<Roster<T>> roster, Source<T> source, List<Named<T>> sorted) {
        boolean some = false;
        for (Roster<T> member : roster) {
            some |= member.rack() != null;
        }
        Map<Set<String>, Integer> numbers = new LinkedHashMap<>();
        numbers.put(Set.of(), 0);
        if (some) {
            for (int p = 0; p < racksOf.length; p++) {
                Set<String> racks = source.racks(sorted.get(topicOf[p]).topic(), p - first[topicOf[p]]);
                racksOf[p] = racks == null ? 0 : numbers.computeIfAbsent(racks, set -> numbers.size());
            }
        }
        boolean[][] away = new boolean[numbers.size()][members.length];
        numbers.forEach((racks, number) -> {
            for (int m = 0; m < members.length; m++) {
                String rack = roster.get(m).rack();
                away[number][m] = !racks.isEmpty() && rack != null && !racks.contains(rack);
            }
        });
        return away;
    }
}
