package azimuth.planner;

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
    private static final int VOID = -2;

    /** Names of the topics that have partitions and a subscriber. */
    public final String[] names;
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
        Roster[] roster = readMembers(source);
        int count = roster.length;
        members = new String[count];
        hashes = new long[count];
        nodeOf = new int[count];
        nodes = nameMembers(roster, seed);

        List<Set<T>> subscriptions = subscriptions(source, roster);
        Map<T, Integer> sizes = new LinkedHashMap<>();
        for (Set<T> subscription : subscriptions) {
            for (T topic : subscription) {
                if (topic != null && !sizes.containsKey(topic)) {
                    sizes.put(topic, source.partitions(topic));
                }
            }
        }
        sizes.values().removeIf(size -> size <= 0);
        List<Named<T>> sorted = new ArrayList<>(sizes.size());
        sizes.keySet().forEach(topic -> sorted.add(new Named<>(source.name(topic), topic)));
        sorted.sort(Comparator.comparing(Named::name, Group::compareCodePoints));
        names = new String[sorted.size()];
        topics = new Object[names.length];
        keys = new long[names.length];
        first = new int[names.length + 1];
        Map<T, Integer> places = new HashMap<>(2 * names.length);
        for (int t = 0; t < names.length; t++) {
            T topic = sorted.get(t).topic();
            names[t] = sorted.get(t).name();
            topics[t] = topic;
            keys[t] = Hash.mix(Hash.name(names[t], seed) + Hash.GOLDEN);
            first[t + 1] = first[t] + sizes.get(topic);
            places.put(topic, t);
        }
        topicOf = new int[partitions()];
        for (int t = 0; t < names.length; t++) {
            Arrays.fill(topicOf, first[t], first[t + 1], t);
        }

        reads = new BitSet[count];
        equal = readSubscriptions(subscriptions, places);
        owner = new int[partitions()];
        intact = new boolean[count];
        readClaims(source, places);
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

    private record Named<T>(String name, T topic) {}

    /** Number of topics. */
    int topics() {
        return names.length;
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

    private record Roster(String id, String identity, String rack) {}

    private static Roster[] readMembers(Source<?> source) {
        Collection<String> ids = source.members();
        Roster[] sorted = new Roster[ids.size()];
        int count = 0;
        for (String id : ids) {
            sorted[count++] = new Roster(id, source.identity(id), source.rack(id));
        }
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

    private static <T> List<Set<T>> subscriptions(Source<T> source, Roster[] roster) {
        List<Set<T>> found = new ArrayList<>(roster.length);
        boolean alike = source.alike();
        for (Roster member : roster) {
            found.add(source.topics(member.id()));
            // A check that costs little: sets of other sizes are not the same, whatever the group is called.
            alike = alike && found.get(found.size() - 1).size() == found.get(0).size();
        }
        return alike && !found.isEmpty() ? found.subList(0, 1) : found;
    }

    private <T> boolean readSubscriptions(List<Set<T>> subscriptions, Map<T, Integer> places) {
        if (subscriptions.size() == 1) {
            BitSet all = new BitSet();
            all.set(0, names.length);
            Arrays.fill(reads, all);
            return true;
        }
        Map<BitSet, BitSet> known = new HashMap<>();
        for (int m = 0; m < reads.length; m++) {
            BitSet mine = new BitSet(names.length);
            for (T topic : subscriptions.get(m)) {
                Integer place = places.get(topic);
                if (place != null) {
                    mine.set(place);
                }
            }
            reads[m] = known.computeIfAbsent(mine, same -> same);
        }
        return known.size() <= 1;
    }

    private <T> void readClaims(Source<T> source, Map<T, Integer> places) {
        Arrays.fill(owner, NOBODY);
        int[] claimed = new int[members.length];
        int[] generations = generations(source);
        int[] newest = generations == null ? null : new int[owner.length];
        for (int m = 0; m < members.length; m++) {
            for (Map.Entry<T, ? extends Collection<Integer>> claim : source.claims(members[m]).entrySet()) {
                claimed[m] += claim.getValue().size();
                Integer topic = places.get(claim.getKey());
                if (topic == null) {
                    continue;
                }
                int size = size(topic);
                for (int partition : claim.getValue()) {
                    if (partition < 0 || partition >= size) {
                        continue;
                    }
                    int at = first[topic] + partition;
                    if (owner[at] == NOBODY || newest != null && generations[m] > newest[at]) {
                        owner[at] = m;
                    } else if (owner[at] != m && (newest == null || generations[m] == newest[at])) {
                        owner[at] = VOID;
                    }
                    if (newest != null) {
                        newest[at] = owner[at] == m ? generations[m] : newest[at];
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

    /** Generations of the members' claims (KIP-792); null where all are of one. */
    private int[] generations(Source<?> source) {
        int[] out = new int[members.length];
        boolean differ = false;
        for (int m = 0; m < out.length; m++) {
            out[m] = Math.max(source.generation(members[m]), -1);
            differ |= out[m] != out[0];
        }
        return differ ? out : null;
    }

    private <T> boolean[][] readRacks(Roster[] roster, Source<T> source, List<Named<T>> sorted) {
        boolean some = false;
        for (Roster member : roster) {
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
