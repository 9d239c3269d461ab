"""Records to partitions, on the published cases of rack-aware partitioning (KIP-1123) and beyond."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from producer.decisions.partitioner_names import ClientPartitioner
from producer.decisions.producer_settings import KeyMode, ZonePolicy
from producer.decisions.rack_warning import rack_problem
from producer.decisions.rendezvous_slots import Table, hrw_table
from producer.decisions.skew_guard import SkewGuard
from producer.decisions.sticky import Chance, chance
from producer.partitioning.partition_of_record import TopicPartitioner
from producer.partitioning.topics_in_use import TopicsInUse

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "data" / "rack_partitioner_cases.json").read_text()
)["cases"]
RANDOM = Random(3)
KEYS = [RANDOM.randbytes(16) for _ in range(10_000)]
ALL_MODES = list(KeyMode)
LOCAL_MODES = [KeyMode.LOCAL_MOD, KeyMode.LOCAL_HRW]


def of_kind(*kinds: str) -> list[Any]:
    """Take the cases of these kinds as parameters."""
    return [pytest.param(case, id=case["id"]) for case in CASES if case["kind"] in kinds]


def policy(case: dict[str, Any], step: dict[str, Any], keys: KeyMode = KeyMode.GLOBAL) -> ZonePolicy:
    """Translate a case's settings."""
    return ZonePolicy(
        rack=step.get("client_rack", case["client_rack"]),
        keys=keys,
        fallback=tuple(case.get("fallback_preference", ())),
        batch_bytes=100,
        hold_s=5.0,
        aware=case["rack_aware"],
    )


def play(case: dict[str, Any], keys: KeyMode = KeyMode.GLOBAL) -> Iterator[tuple[dict[str, Any], TopicPartitioner]]:
    """Walk one producer per policy through the metadata of a case."""
    routers: dict[ZonePolicy, TopicsInUse] = {}
    now = 0.0
    for step in case["steps"]:
        settings = policy(case, step, keys)
        topics_in_use = routers.setdefault(settings, TopicsInUse(settings, chance(11)))
        racks = {broker["id"]: broker["rack"] for broker in step.get("brokers", case["brokers"])}
        now += 1.0
        partitioner = topics_in_use.update(step.get("topic", "t"), step["leaders"], racks, now)
        if step.get("settle"):
            partitioner = topics_in_use.update(step.get("topic", "t"), step["leaders"], racks, now + 6.0)
            now += 6.0
        yield step, partitioner


def counting() -> Chance:
    """Draw 0, 1, 2, ... instead of random numbers, each modulo the requested range."""
    numbers = count()
    return lambda n: next(numbers) % n


def sticky(partitioner: TopicPartitioner, switches: int) -> Counter[int]:
    """Send records without a key, a tenth of a run each, until the run moved on so often."""
    seen: Counter[int] = Counter()
    for _ in range(switches * 10):
        destinations = partitioner.destinations
        destinations.unkeyed.add(destinations.partition, 10)
        seen[destinations.partition] += 1
        if destinations.is_full():
            partitioner.advance()
    return seen


@pytest.mark.filterwarnings("ignore::producer.RackWarning")
@pytest.mark.parametrize("case", of_kind("null-key"))
def test_records_without_a_key_go_only_where_they_may_and_reach_all_of_it(case: dict[str, Any]) -> None:
    """Own zone, then preferred ones, then every leader, then all; evenly where the case says so."""
    for step, partitioner in play(case):
        seen = sticky(partitioner, 1_000 if step.get("even") else 100)
        assert set(seen) <= set(step["allowed"])
        assert set(step.get("reach", ())) <= set(seen)
        if step.get("even"):
            fair = seen.total() / len(step["allowed"])
            assert all(fair / 2 <= seen[partition] <= fair * 2 for partition in step["allowed"])


@pytest.mark.parametrize("case", [param for param in of_kind("null-key") if param.values[0].get("warn")])
def test_zones_that_cannot_be_compared_are_a_problem_that_names_the_racks(case: dict[str, Any]) -> None:
    """A producer that sends everything away must not do so in silence."""
    racks = {broker["rack"] for broker in case["brokers"]}
    problem = rack_problem(policy(case, {}), racks)
    assert problem is not None
    assert all(rack in problem for rack in racks)


@pytest.mark.filterwarnings("ignore::producer.RackWarning")
@pytest.mark.parametrize("case", [param for param in of_kind("null-key") if param.id == "sticky-sequence"])
def test_choices_equal_javas_when_the_random_numbers_are_its_own(case: dict[str, Any]) -> None:
    """Java's test draws 0, 1, 2, ... over the whole case and takes each modulo the candidates."""
    numbers = count()
    expected = [partition for step in case["steps"] for partition in step["java_sequence"]]
    got = []
    for step in case["steps"]:
        racks = {broker["id"]: broker["rack"] for broker in step.get("brokers", case["brokers"])}
        partitioner = TopicPartitioner("t", policy(case, step), lambda n: next(numbers) % n)
        partitioner.update_leaders(step["leaders"], racks, 0.0)
        for _ in range(len(step["java_sequence"]) - 1):
            got.append(partitioner.destinations.partition)
            partitioner.advance()
            continue
        got.append(partitioner.destinations.partition)
    assert got == expected


@pytest.mark.parametrize("case", of_kind("keyed-global"))
def test_global_keys_ignore_leaders_and_zones(case: dict[str, Any]) -> None:
    """Order per key is worth more than locality there, so no leader may change the mapping."""
    for step, partitioner in play(case):
        for row in step["keys"]:
            assert partitioner.destinations.keyed_partition(bytes.fromhex(row["key_hex"])) == row["partition"]


@pytest.mark.parametrize("mode", LOCAL_MODES)
@pytest.mark.parametrize("case", of_kind("keyed-local"))
def test_local_keys_stay_in_the_local_set_and_reach_all_of_it(case: dict[str, Any], mode: KeyMode) -> None:
    """Both local modes, also when the set is a fallback."""
    for step, partitioner in play(case, mode):
        seen = {partitioner.destinations.keyed_partition(key) for key in KEYS[:500]}
        assert seen <= set(step["allowed"])
        assert set(step.get("reach", ())) <= seen
        assert all(
            partitioner.destinations.keyed_partition(key) == partitioner.destinations.keyed_partition(key)
            for key in KEYS[:50]
        )


@pytest.mark.parametrize("case", of_kind("keyed-hrw-moves"))
def test_hrw_moves_keys_only_from_the_lost_or_to_the_won_leader(case: dict[str, Any]) -> None:
    """The point of rendezvous hashing: no key moves between two leaders that stayed."""
    before: list[int] = []
    for step, partitioner in play(case, KeyMode.LOCAL_HRW):
        after = [partitioner.destinations.keyed_partition(key) for key in KEYS]
        assert set(after) <= set(step["allowed"])
        if before:
            moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
            assert len(moved) <= step["max_moved_share"] * len(KEYS)
            assert {old for old, _ in moved} <= set(step.get("moves_only_from", range(8)))
            assert {new for _, new in moved} <= set(step.get("moves_only_to", range(8)))
        before = after


@pytest.mark.filterwarnings("ignore::producer.RackWarning")
@pytest.mark.parametrize("case", of_kind("load-weights"))
def test_a_longer_queue_never_gets_more(case: dict[str, Any]) -> None:
    """Java's exact counts come out when the draws run twice through the whole range of the weights."""
    for step, partitioner in play(case):
        queues = {partition: length for partition, length in enumerate(step["queues"]) if length is not None}
        partitioner.set_queues(queues)
        partitioner._chance = counting()
        chosen = Counter(partitioner._next_partition() for _ in range(sum(step.get("java_frequencies", [42]))))
        assert set(chosen) <= set(step["allowed"])
        order = sorted(step["allowed"], key=lambda one: queues.get(one, 0))
        assert all(chosen[short] >= chosen[long] for short, long in pairwise(order))
        if "java_frequencies" in step:
            assert [chosen[partition] for partition in range(len(step["leaders"]))] == step["java_frequencies"]


@pytest.mark.parametrize("mode", ALL_MODES)
def test_120_partitions_over_three_zones_leave_40_candidates_per_producer(mode: KeyMode) -> None:
    """The textbook case: the zones share the topic out, and a key's hash falls inside the own 40."""
    racks: dict[int, str | None] = {1: "az-a", 2: "az-b", 3: "az-c"}
    sets = []
    for zone in ("az-a", "az-b", "az-c"):
        topics_in_use = TopicsInUse(ZonePolicy(rack=zone, keys=mode, batch_bytes=1))
        partitioner = topics_in_use.update("t", [1, 2, 3] * 40, racks, 0.0)
        candidates = set(partitioner.locality.candidates)
        assert len(candidates) == 40
        assert set(sticky(partitioner, 500)) == candidates
        keyed = {partitioner.destinations.keyed_partition(key) for key in KEYS}
        assert keyed == (set(range(120)) if mode is KeyMode.GLOBAL else candidates)
        sets.append(candidates)
    assert set.union(*sets) == set(range(120))


@pytest.mark.parametrize(
    ("leaders", "zone", "mode", "places"),
    [
        ([1, 2, 3, 1, 2, 3], "az-a", KeyMode.GLOBAL, [2, 4, 0]),
        ([1, 2, 3, 1, 2, 3], "az-b", KeyMode.GLOBAL, [2, 4, 0]),
        ([1, 2, 3, 1, 2, 3], "az-a", KeyMode.LOCAL_MOD, [0, 0, 0]),
        ([1, 2, 3, 1, 2, 3], "az-b", KeyMode.LOCAL_MOD, [1, 1, 1]),
        ([1, 2, 3, 1, 2, 3], "az-a", KeyMode.LOCAL_HRW, [0, 0, 0]),
        ([1, 2, 3, 1, 2, 3], "az-b", KeyMode.LOCAL_HRW, [1, 4, 1]),
        ([2, 2, 3, 1, 2, 3], "az-b", KeyMode.LOCAL_MOD, [4, 1, 0]),
        ([2, 2, 3, 1, 2, 3], "az-b", KeyMode.LOCAL_HRW, [0, 4, 1]),
    ],
)
def test_the_documented_example_holds(leaders: list[int], zone: str, mode: KeyMode, places: list[int]) -> None:
    """docs/key-modes.md; it also pins the mapping, which producers of different versions must share."""
    partitioner = TopicsInUse(ZonePolicy(rack=zone, keys=mode)).update(
        "flights", leaders, {1: "az-a", 2: "az-b", 3: "az-c"}, 0.0
    )
    assert [partitioner.destinations.keyed_partition(key) for key in (b"JFK-LAX", b"LGA-ORD", b"EWR-SFO")] == places


@pytest.mark.parametrize("bound", [1.2, 1.6, 2.0])
@pytest.mark.parametrize("led", [[1, 2, 3], [1, 2, 2, 3, 3, 3], [1, 2, 3] * 4 + [3] * 6, [2] + [1, 3] * 10])
def test_no_partition_is_over_the_skew_bound_wherever_a_producer_stops(led: list[int], bound: float) -> None:
    """Two zones of three produce; the run under way and the last record of each run count as well."""
    racks: dict[int, str | None] = {1: "az-a", 2: "az-b", 3: "az-c"}
    guard = SkewGuard(bound=bound, zones={"az-a": 1, "az-b": 1})
    size, run = 90, 1_000
    partitioners = [
        TopicsInUse(ZonePolicy(rack=zone, skew=guard, batch_bytes=run)).update("t", led, racks, 0.0)
        for zone in ("az-a", "az-b")
    ]
    few = 8 * len(led) * run // size  # where a partition has had a run or two, the mean says little yet
    over = list[float]()
    for sent in range(1, 2 * few):
        for partitioner in partitioners:
            partitioner.destinations.unkeyed.add(partitioner.destinations.partition, size)
            if partitioner.destinations.is_full():
                partitioner.advance()
        if sent > few:
            loads = [
                sum(partitioner.destinations.unkeyed.of(number).bytes for partitioner in partitioners)
                for number in range(len(led))
            ]
            over.append(max(loads) * len(led) / sum(loads))
    assert max(over) <= bound


def runs(topics_in_use: TopicsInUse, records: int, size: int = 10) -> Counter[int]:
    """Send records without a key to the topic `t`; return how many each partition got."""
    places: Counter[int] = Counter()
    for _ in range(records):
        destinations = topics_in_use.destinations["t"]
        places[destinations.partition] += 1
        destinations.unkeyed.add(destinations.partition, size)
        if destinations.is_full():
            topics_in_use.advance("t", destinations)
    return places


RACKS: dict[int, str | None] = {1: "az-a", 2: "az-b", 3: "az-c"}


def test_a_table_is_built_while_other_threads_may_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 10,000 partitions it takes 0.2 s, for which every switch of a partition waited."""
    topics_in_use = TopicsInUse(ZonePolicy(rack="az-a", keys=KeyMode.LOCAL_HRW, hold_s=0.0))
    built: dict[tuple[int, ...], bool] = {}

    def noting(partitions: int, members: tuple[int, ...]) -> Table:
        built.setdefault(members, topics_in_use._lock._is_owned())  # type: ignore[attr-defined]  # CPython's
        return hrw_table(partitions, members)

    monkeypatch.setattr("producer.partitioning.partition_of_record.slot_table", noting)
    for second, leaders in enumerate(([1, 2, 3], [2, 2, 3], [1, 1, 2])):
        topics_in_use.update("t", leaders, RACKS, float(second))
    assert built == {(0,): False, (0, 1, 2): False, (0, 1): False}


def test_the_skew_guard_gives_nothing_to_a_partition_without_a_leader() -> None:
    """A dead zone has the fewest bytes, but records sent there would wait and finally be lost."""
    guard = SkewGuard(bound=1.2, zones={"az-a": 2, "az-b": 1})
    topics_in_use = TopicsInUse(ZonePolicy(rack="az-a", skew=guard, batch_bytes=100))
    topics_in_use.update("t", [1, 2, 3, 2], RACKS, 0.0)
    assert set(runs(topics_in_use, 3_000)) == {0, 1, 2, 3}
    topics_in_use.update("t", [1, 2, None, 2], RACKS, 1.0)
    places = runs(topics_in_use, 3_000)
    assert set(places) == {0, 1, 3}
    assert places[0] < 3_000, "the guard still gives away"


@pytest.mark.parametrize("bound", [1.2, 4.0], ids=["spilling", "all at home"])
@pytest.mark.parametrize("leader", [1, 2], ids=["at home", "elsewhere"])
def test_a_new_partition_takes_its_share_and_not_all(bound: float, leader: int) -> None:
    """Partitions are balanced from then on: catching up with the whole past would use one partition for hours."""
    topics_in_use = TopicsInUse(ZonePolicy(rack="az-a", skew=SkewGuard(bound=bound), batch_bytes=100))
    topics_in_use.update("t", [1, 1, 2, 2, 3, 3], RACKS, 0.0)
    runs(topics_in_use, 30_000)
    topics_in_use.update("t", [1, 1, 2, 2, 3, 3, leader], RACKS, 1.0)
    places = runs(topics_in_use, 3_000)
    assert places[6] < 3_000 / 2
    assert places[6] > 0 or (leader == 2 and bound > 2)
    assert max(places.values()) <= bound * 3_000 / 7 + 200 or bound > 2


@pytest.mark.parametrize("partitioner", list(ClientPartitioner))
def test_ignored_keys_stick_to_a_partition_for_a_batch_whatever_the_partitioner(partitioner: ClientPartitioner) -> None:
    """A partitioner that hashes a missing key would send every record of the topic to one partition."""
    settings = ZonePolicy(rack="a", keys=KeyMode.IGNORE, partitioner=partitioner, batch_bytes=100)
    made = TopicPartitioner("t", settings, chance(1))
    made.update_leaders([1, 2, 1, 2, 1, 2], {1: "a", 2: "b"}, 0.0)
    assert made.destinations.switch_at <= 100
    assert made.destinations.partition in made.locality.candidates


def test_records_sent_before_a_change_of_leaders_keep_the_copies_of_that_time() -> None:
    """Counts on the bill never change afterwards; a report of leaders without replicas forgets nothing."""
    topics_in_use = TopicsInUse(ZonePolicy(rack="az-a", hold_s=0.0))
    partitioner = topics_in_use.update("t", [1, 2], RACKS, 0.0, [[1, 2, 3], [2, 3]])
    assert topics_in_use.traffic().replicated_bytes == 0
    partitioner.count_explicit(0, 100)
    partitioner.count_explicit(1, 100)
    topics_in_use.update("t", [1, 2], RACKS, 1.0)
    assert topics_in_use.traffic().replicated_bytes == 300
    topics_in_use.update("t", [1, 2], RACKS, 2.0, [[1], [2]])
    partitioner.count_explicit(0, 100)
    partitioner.count_explicit(9, 100)
    assert topics_in_use.traffic().replicated_bytes == 300
