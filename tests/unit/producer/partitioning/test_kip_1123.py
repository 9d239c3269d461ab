"""Records without a key take Java's partitions, on each case of its own test of the rack-aware partitioner (KIP-1123).

Java's test replaces the random numbers by 0, 1, 2, ... So the choices here can be compared one by one: the same number
is drawn at the same choice.

Source: BuiltInPartitionerTest of Apache Kafka 4.4 (KIP-794, KIP-1123), re-expressed as data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

import pytest

from producer import PolicyError
from producer.decisions.candidate_partitions_in_zone import Racks
from producer.decisions.producer_settings import ZonePolicy
from producer.partitioning.topics_in_use import TopicsInUse

RACKS: Racks = {0: "rack0", 1: "rack1", 2: "rack0", 3: "rack1", 11: "rack2"}
NO_RACKS: Racks = dict.fromkeys(RACKS)
OFFLINE = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """The metadata of a topic from here on, and the next choices.

    Attributes:
        leaders: broker id per partition.
        choices: the partition of each choice, in order.
        queues: batches waiting per partition, if they are known.
        racks: rack per broker id.
    """

    leaders: Sequence[int | None]
    choices: Sequence[int]
    queues: Mapping[int, int] | None = None
    racks: Racks = field(default_factory=lambda: RACKS)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One method of Java's test, with one row of its parameters.

    Attributes:
        rack: zone of the producer, None for a producer that is not rack-aware.
        steps: by topic; each topic has its own random numbers, as each has its own partitioner in Java.
        batch: bytes of a run; each record has one byte.
    """

    rack: str | None
    steps: Mapping[str, Sequence[Step]]
    batch: int = 1


def unavailable(rack: str | None) -> Case:
    """Partitions without a leader: never one of them while there is another, and the only one if there is none."""
    return Case(
        rack=rack,
        steps={
            "A": [Step(leaders=[0, OFFLINE, 2], choices=[0, 2] * 51)],
            "B": [Step(leaders=[OFFLINE, 0], choices=[1] * 101)],
            "C": [Step(leaders=[OFFLINE], choices=[0, 0])],
        },
    )


def adaptive(rack: str | None, racks: Racks) -> Case:
    """Queues of 5, 0, 3, 0 and 1 batches: weights of 1, 6, 3, 6 and 5, twice through their sum."""
    weighted = [0] * 1 + [1] * 6 + [2] * 3 + [3] * 6 + [4] * 5
    queues = dict(enumerate([5, 0, 3, 0, 1]))
    return Case(
        rack=rack,
        steps={"A": [Step(leaders=[0, 1, 2, 3, 11], queues=queues, racks=racks, choices=weighted * 2)]},
    )


CASES = {
    "testStickyPartitioning: A": Case(rack=None, batch=3, steps={"A": [Step(leaders=[0, 1, 2], choices=[0, 1, 2, 0])]}),
    "testStickyPartitioning: B, of one partition": Case(rack=None, steps={"B": [Step(leaders=[0], choices=[0] * 10)]}),
    "testStickyPartitioningWithRackAwareness": Case(
        rack="rack0",
        steps={
            "A": [
                Step(leaders=[0, 1, 2, 3], choices=[0, 2, 0]),
                Step(leaders=[0, 1, OFFLINE, 3], choices=[0, 0]),
                Step(leaders=[OFFLINE, 1, OFFLINE, 3], choices=[3]),
                Step(leaders=[0, 1, 2, 3], choices=[0]),
                Step(leaders=[0, 1, 2, 3], racks=NO_RACKS, choices=[3, 0, 1, 2, 3]),
            ]
        },
    ),
    "unavailablePartitionsTest: false": unavailable(None),
    "unavailablePartitionsTest: rack0": unavailable("rack0"),
    "unavailablePartitionsTest: rack1, of an unavailable partition": unavailable("rack1"),
    "unavailablePartitionsTest: rack2, of no partition": unavailable("rack2"),
    "adaptivePartitionsTest: no racks, not aware": adaptive(None, NO_RACKS),
    "adaptivePartitionsTest: racks, not aware": adaptive(None, RACKS),
    "adaptivePartitionsTest: no racks, aware": adaptive("rack0", NO_RACKS),
    "adaptivePartitionsTestWithRackAwareness": Case(
        rack="rack0",
        steps={
            "A": [
                # Twice through the weights of 1 and 3, and the first one of a third time.
                Step(leaders=[0, 1, 2, 3], queues=dict(enumerate([5, 0, 3, 0])), choices=[0, 2, 2, 2] * 2 + [0]),
                Step(leaders=[0, 1, OFFLINE, 3], queues={0: 1, 1: 2, 3: 3}, choices=[0] * 4),
                Step(leaders=[OFFLINE, 1, OFFLINE, 3], queues={1: 1, 3: 2}, choices=[1, 3]),
            ]
        },
    ),
}


class Draws:
    """Java's random numbers in its test: 0, 1, 2, ..."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, below: int) -> int:
        """Draw the next one."""
        self.count += 1
        return (self.count - 1) % below


@pytest.mark.filterwarnings("ignore::producer.RackWarning")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_records_without_a_key_take_javas_partitions(hot: ModuleType, case: Case) -> None:
    """Choice by choice, while leaders leave, return and lose their racks under one producer."""
    policy = ZonePolicy(rack=case.rack, aware=case.rack is not None, batch_bytes=case.batch, hold_s=0.0)
    for topic, steps in case.steps.items():
        draws = Draws()
        topics = TopicsInUse(policy, draws, destinations=hot.Destinations)
        chosen: list[int] = []
        for step in steps:
            topics.set_queues(topic, step.queues or {})
            topics.update(topic, step.leaders, step.racks, 0.0)
            topics.set_queues(topic, step.queues or {})  # unknown topics ignore them
            for _ in step.choices:
                sent = send_until_drawn(topics, topic, draws, len(chosen))
                assert sent in {0, case.batch}, "a run has a batch of bytes, unless its leader left"
                chosen.append(topics.destinations[topic].partition)
            assert chosen[-len(step.choices) :] == list(step.choices)


def send_until_drawn(topics: TopicsInUse, topic: str, draws: Draws, before: int) -> int:
    """Send records of one byte until another number was drawn; return how many."""
    sent = 0
    while draws.count == before:
        destinations = topics.destinations[topic]
        sent += 1
        if destinations.take_unkeyed(1):
            topics.advance(topic, destinations)
    return sent


def test_a_run_of_no_bytes_is_refused() -> None:
    """As by `testStickyBatchSizeMoreThatZero`: such a run would never begin."""
    with pytest.raises(PolicyError, match="batch_bytes=0"):
        ZonePolicy(batch_bytes=0)
    assert ZonePolicy(batch_bytes=1).batch_bytes == 1
