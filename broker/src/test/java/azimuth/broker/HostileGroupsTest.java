package azimuth.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import azimuth.planner.Band;
import azimuth.planner.Group;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.junit.jupiter.api.Test;

/** Groups that no broker should hand over: a plan that throws would stop the group for all of its members. */
class HostileGroupsTest {
    private static final int GROUPS = Integer.getInteger("azimuth.groups", 5_000);
    private static final String[] RACKS = {"az-a", "az-b", "az-c"};

    @Test
    void everyPartitionWithASubscriberHasOneReaderWithinTheCapAndTheBounds() {
        IntStream.range(0, GROUPS).parallel().forEach(HostileGroupsTest::checkGroup);
    }

    private static void checkGroup(int seed) {
        GroupOf group = draw(new Random(seed));
        Random dice = new Random(~seed);
        int workers = dice.nextInt(3) == 0 ? 1 + dice.nextInt(3) : Integer.MAX_VALUE;
        double epsilon = dice.nextInt(2) * 0.05;
        AzimuthAssignor assignor = dice.nextBoolean() ? new HrwAssignor() : new ShuffledAssignor();
        assignor.configure(Map.of("azimuth.workers", workers, "azimuth.epsilon", epsilon));
        String where = "seed " + seed;
        GroupAssignment made = assignor.assign(group, group);
        check(group, made, workers, where);
        if (workers == Integer.MAX_VALUE) {
            checkBounds(group, made, epsilon, where);
        }
        assertEquals(plain(made), plain(assignor.assign(shuffled(group, dice), group)), where + ": the order of members decides");
        // Under a cap a plan may still even out the loads of the one before; without one it is at rest at once.
        int rest = workers == Integer.MAX_VALUE ? 1 : 10;
        GroupAssignment before;
        do {
            before = made;
            settle(group, made);
            made = assignor.assign(group, group);
        } while (--rest > 0 && !plain(made).equals(plain(before)));
        assertEquals(plain(before), plain(made), where + ": plans without a change move something");
    }

    @Test
    void aNewcomerIsNotLeftIdleByACap() {
        GroupOf group = new GroupOf();
        for (int t = 0; t < 40; t++) {
            group.topics.put(new Uuid(1, t), 3);
        }
        AzimuthAssignor assignor = new HrwAssignor();
        assignor.configure(Map.of("azimuth.workers", 2));
        for (int m = 1; m <= 6; m++) {
            group.members.put("member-" + m, new GroupOf.Member(null, null, Set.copyOf(group.topics.keySet())));
            GroupAssignment made = assignor.assign(group, group);
            check(group, made, 2, m + " members");
            int members = m;
            made.members().forEach((name, mine) -> {
                int load = mine.partitions().values().stream().mapToInt(Set::size).sum();
                assertTrue(Math.abs(load - 120 / members) <= 120 / members / 4, () -> members + " members: a load of " + load);
            });
            settle(group, made);
        }
    }

    /** All ids lead to one place of the table that finds the topic of a claim. */
    @Test
    void claimsOnTopicsOfOneHashCodeAreKept() {
        GroupOf group = new GroupOf();
        for (int t = 1; t <= 100; t++) {
            group.topics.put(new Uuid(t, t), 3);
        }
        assertEquals(1, group.topics.keySet().stream().map(Uuid::hashCode).distinct().count());
        for (int m = 0; m < 5; m++) {
            group.members.put("member-" + m, new GroupOf.Member(null, null, Set.copyOf(group.topics.keySet())));
        }
        HrwAssignor other = new HrwAssignor();
        other.configure(Map.of("azimuth.seed", 7)); // its plan is not the one that would be made from nothing
        settle(group, other.assign(group, group));
        GroupAssignment before = other.assign(group, group);
        assertEquals(plain(before), plain(new HrwAssignor().assign(group, group)));
    }

    @Test
    void whatIsNullCountsAsAbsent() {
        Uuid topic = new Uuid(1, 1);
        Map<Uuid, Set<Integer>> odd = new HashMap<>();
        odd.put(topic, new HashSet<>(Arrays.asList(0, null)));
        odd.put(null, Set.of(1));
        odd.put(new Uuid(1, 2), null);
        GroupOf group = new GroupOf();
        group.topics.put(topic, 3);
        group.racks.put(topic, Arrays.asList(Set.of("az-a"), new HashSet<>(Arrays.asList("az-b", null)), null));
        group.members.put("odd", new GroupOf.Member(Optional.of("az-a"), Optional.empty(), new HashSet<>(Arrays.asList(topic, null)), odd));
        group.members.put("none", new GroupOf.Member(Optional.empty(), Optional.empty(), Set.of(topic), null));
        group.members.put("idle", new GroupOf.Member(Optional.empty(), Optional.empty(), null, null));
        for (AzimuthAssignor assignor : List.of(new HrwAssignor(), new ShuffledAssignor())) {
            Map<String, Map<Uuid, Set<Integer>>> made = plain(assignor.assign(group, group));
            Set<Integer> given = new HashSet<>(made.get("none").getOrDefault(topic, Set.of()));
            assertTrue(made.get("odd").get(topic).contains(0), "a claim beside one that is null is kept");
            made.get("odd").get(topic).forEach(p -> assertTrue(given.add(p), "given twice"));
            assertEquals(Set.of(0, 1, 2), given);
            assertEquals(Map.of(), made.get("idle"));
        }
    }

    @Test
    void plansMadeAtTheSameTimeAreThePlansMadeAlone() throws Exception {
        AzimuthAssignor assignor = new HrwAssignor();
        List<GroupOf> groups = new ArrayList<>();
        List<Object> alone = new ArrayList<>();
        for (int seed = 0; seed < 500; seed++) {
            groups.add(draw(new Random(seed)));
            alone.add(plain(assignor.assign(groups.get(seed), groups.get(seed))));
        }
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try {
            List<Callable<Object>> calls = new ArrayList<>();
            groups.forEach(group -> calls.add(() -> plain(assignor.assign(group, group))));
            List<Object> together = new ArrayList<>();
            for (Future<Object> call : threads.invokeAll(calls)) {
                together.add(call.get());
            }
            assertEquals(alone, together);
        } finally {
            threads.shutdown();
        }
    }

    /** Members without subscriptions, unknown topics, false and doubled claims, missing racks, shared instance ids. */
    private static GroupOf draw(Random dice) {
        GroupOf group = new GroupOf();
        List<Uuid> known = new ArrayList<>();
        List<Uuid> named = new ArrayList<>(List.of(new Uuid(0, 0)));
        int topics = dice.nextInt(8);
        boolean racks = dice.nextBoolean();
        for (int t = 0; t < topics; t++) {
            Uuid topic = new Uuid(dice.nextLong(), dice.nextLong());
            named.add(topic);
            if (dice.nextInt(6) == 0) {
                continue;
            }
            known.add(topic);
            group.topics.put(topic, dice.nextInt(dice.nextInt(4) == 0 ? 40 : 5));
            List<Set<String>> sets = new ArrayList<>();
            for (int p = 0; p < group.topics.get(topic); p++) {
                Set<String> set = new HashSet<>();
                for (int r = dice.nextInt(4); r > 0; r--) {
                    set.add(RACKS[dice.nextInt(3)]);
                }
                sets.add(racks ? set : dice.nextInt(3) == 0 ? null : Set.of());
            }
            group.racks.put(topic, sets);
        }
        boolean equal = dice.nextBoolean();
        int members = dice.nextInt(10);
        for (int m = 0; m < members; m++) {
            Set<Uuid> wanted = new HashSet<>();
            for (Uuid topic : named) {
                if (equal || dice.nextBoolean()) {
                    wanted.add(topic);
                }
            }
            String instance = dice.nextBoolean() ? "host-" + dice.nextInt(3) + "-" + dice.nextInt(3) : dice.nextInt(9) == 0 ? "" : null;
            GroupOf.Member member = new GroupOf.Member(racks && dice.nextBoolean() ? RACKS[dice.nextInt(3)] : null, instance, wanted);
            for (int c = dice.nextInt(30); c > 0; c--) {
                member.claim(named.get(dice.nextInt(named.size())), dice.nextInt(12) == 0 ? dice.nextInt() : dice.nextInt(8));
            }
            group.members.put("member-" + (dice.nextInt(1000) * 16 + m), member);
        }
        return group;
    }

    private static void check(GroupOf group, GroupAssignment made, int workers, String where) {
        assertEquals(group.members.keySet(), made.members().keySet(), where);
        Map<Uuid, Integer> readers = new HashMap<>();
        Map<Uuid, Set<Integer>> given = new HashMap<>();
        made.members().forEach((name, mine) -> mine.partitions().forEach((topic, partitions) -> {
            if (partitions.isEmpty()) {
                return;
            }
            assertTrue(group.members.get(name).subscribedTopicIds().contains(topic), where + ": a topic it did not ask for");
            readers.merge(topic, 1, Integer::sum);
            for (int p : partitions) {
                assertTrue(p >= 0 && p < group.numPartitions(topic), where + ": no such partition");
                assertTrue(given.computeIfAbsent(topic, id -> new HashSet<>()).add(p), where + ": given twice");
            }
        }));
        group.topics.forEach((topic, size) -> {
            boolean wanted = group.members.values().stream().anyMatch(member -> member.subscribedTopicIds().contains(topic));
            assertEquals(wanted ? size : 0, given.getOrDefault(topic, Set.of()).size(), where + ": partitions lost");
        });
        readers.forEach((topic, count) -> assertTrue(count <= workers, where + ": " + count + " readers of a topic"));
    }

    private static void checkBounds(GroupOf group, GroupAssignment made, double epsilon, String where) {
        Group read = Group.read(new BrokerGroup(group, group), 0);
        if (!read.equal || read.members.length == 0) {
            return;
        }
        Band band = Band.fair(read.partitions(), read.members.length, epsilon);
        made.members().forEach((name, mine) -> {
            int load = mine.partitions().values().stream().mapToInt(Set::size).sum();
            assertTrue(load >= band.low()[0] && load <= band.high()[0], where + ": a load of " + load);
        });
    }

    private static Map<String, Map<Uuid, Set<Integer>>> plain(GroupAssignment made) {
        Map<String, Map<Uuid, Set<Integer>>> out = new HashMap<>();
        made.members().forEach((name, mine) -> out.put(name, new HashMap<>(mine.partitions())));
        out.values().forEach(mine -> mine.values().removeIf(Set::isEmpty));
        return out;
    }

    private static GroupOf shuffled(GroupOf group, Random dice) {
        GroupOf other = new GroupOf();
        List<String> names = new ArrayList<>(group.members.keySet());
        Collections.shuffle(names, dice);
        names.forEach(name -> other.members.put(name, group.members.get(name)));
        return other;
    }

    private static void settle(GroupOf group, GroupAssignment made) {
        group.members.forEach((name, member) -> {
            Map<Uuid, Set<Integer>> mine = new HashMap<>(made.members().get(name).partitions());
            member.partitions().clear();
            member.partitions().putAll(mine);
        });
    }
}
