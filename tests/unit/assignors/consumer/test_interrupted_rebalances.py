"""An interruption at any point of a rebalance: the next call does the rest, and the program is called once."""

import contextlib
import gc
import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from confluent_kafka import Message
from confluent_kafka import TopicPartition as Partition

from assignors import GroupConsumer
from assignors.planner.topics_and_members import TopicPartition
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer import scripted_member
from tests.unit.assignors.consumer.interruption_points import Interrupter, Interruption
from tests.unit.assignors.consumer.scripted_member import ScriptedMember, Waiting

# What is dropped at such a point has its end there, and the interpreter only reports what is raised there.
pytestmark = [pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"), pytest.mark.long]

ALL: Final = frozenset({("t", 0), ("t", 1), ("t", 2)})
BEGIN: Final = {("t", 0): 45, ("t", 1): 46, ("t", 2): 47}
SPARED: Final = frozenset({__file__, scripted_member.__file__})


class Program:
    """A consumer, its member, and what its program sees.

    Args:
        cluster: has the records.
        kind: who commits, and whether there are callbacks.
    """

    def __init__(self, cluster: MockCluster, kind: str) -> None:
        self.kind = kind
        self.one = GroupConsumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "scripted",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": kind in {"automatic commits", "no callbacks"},
                "auto.commit.interval.ms": 3_600_000,
                "log_level": 0,
            }
        )
        self.member: Any = None
        self.seen: list[tuple[str, frozenset[TopicPartition]]] = []
        self.waits: Waiting | None = None
        self.delivered: list[Message] = []
        self.interrupted_in = ""
        self.one._kafka_azimuth.membership._members._of_classic = self._made  # type: ignore[assignment, method-assign]
        self.subscribe()

    def _made(self, *_: object) -> ScriptedMember:
        self.member = ScriptedMember(self.one)
        self.member.committed_of.update(BEGIN)
        return self.member  # type: ignore[no-any-return]  # Any above: it stands in for a member

    def subscribe(self) -> None:
        """Join."""
        if self.kind == "no callbacks":
            self.one.subscribe(["t"])
        else:
            self.one.subscribe(["t"], self._note("assigned"), self._note("revoked"), self._note("lost"))

    def _note(self, what: str) -> Callable[[GroupConsumer, list[Partition]], None]:
        def call(one: GroupConsumer, partitions: list[Partition]) -> None:
            keys = frozenset((each.topic, each.partition) for each in partitions)
            self.seen.append((what, keys))
            assert self.waits is None or not self.waits.ended, "on_revoke after the release"
            if what == "revoked" and self.kind == "commit in on_revoke":
                try:
                    one.commit(asynchronous=False)
                except Interruption:  # as any program that wants its commit
                    one.commit(asynchronous=False)

        return call

    def read(self, count: int) -> None:
        """Deliver so many records."""
        self.delivered += read(self.one, count)

    def interrupted(self, number: int, call: Callable[[], object]) -> Interrupter:
        """Interrupt a call."""
        interrupter = Interrupter(number, SPARED)
        interrupter.run(call)
        self.interrupted_in = interrupter.raised_in
        return interrupter

    def poll(self) -> None:
        """Poll, and keep what comes."""
        self.delivered += [found for found in [self.one.poll(0)] if found is not None]

    def poll_until(self, waits: Waiting) -> None:
        """Poll until the member goes on, and a last time; what a callback has raised comes out of it."""
        until, ended = time.monotonic() + 20, False
        while not ended:
            assert time.monotonic() < until
            ended = waits.ended
            with contextlib.suppress(Interruption):
                self.poll()

    def saw(self, *expected: tuple[str, frozenset[TopicPartition]]) -> None:
        """Check what the callbacks have seen, and forget it."""
        assert self.kind == "no callbacks" or self.seen == list(expected)
        self.seen.clear()

    def check_commits(self, partitions: frozenset[TopicPartition]) -> None:
        """Check that exactly what was delivered is committed, if it is this kind that commits."""
        assert not self.member.refused
        progress = dict(BEGIN)
        for one in self.delivered:
            progress["t", int(one.partition() or 0)] = int(one.offset() or 0) + 1
        for key in partitions:
            wanted = BEGIN[key] if self.kind == "no commits" else progress[key]
            assert self.member.committed_of[key] == wanted, (key, self.member.committed_of, progress)

    def check_deliveries(self) -> None:
        """Check that each record was delivered once, in order."""
        assert offsets(self.delivered) == {key[1]: list(range(at, RECORDS)) for key, at in BEGIN.items()}


RECORDS_LEFT: Final = sum(RECORDS - at for at in BEGIN.values())


def first_assignment(program: Program, number: int) -> Interrupter:
    """Each partition is read from the group's offset on."""
    program.member.assign(ALL)
    found = program.interrupted(number, program.poll)
    program.read(RECORDS_LEFT - len(program.delivered))
    program.check_deliveries()
    program.saw(("assigned", ALL))
    return found


def assignment_of_one_more(program: Program, number: int) -> Interrupter:
    """The others go on."""
    more = frozenset({("t", 2)})
    program.member.assign(ALL - more)
    program.read(5)
    program.member.assign(more)
    found = program.interrupted(number, program.poll)
    program.read(RECORDS_LEFT - len(program.delivered))
    program.check_deliveries()
    program.saw(("assigned", ALL - more), ("assigned", more))
    return found


def revocation(program: Program, number: int) -> Interrupter:
    """One on_revoke before the release, and the next owner begins after what was delivered."""
    gone = frozenset({("t", 0), ("t", 1)})
    program.member.assign(ALL)
    program.read(6)
    program.waits = program.member.revoke(gone)
    found = program.interrupted(number, program.poll)
    program.poll_until(program.waits)
    program.waits = None
    program.saw(("assigned", ALL), ("revoked", gone))
    assert {each.partition for each in program.one.assignment()} == {2}
    program.check_commits(gone)
    if program.kind == "no commits":
        return found
    program.member.assign(gone)
    program.read(RECORDS_LEFT - len(program.delivered))
    program.check_deliveries()
    program.saw(("assigned", gone))
    return found


def loss(program: Program, number: int) -> Interrupter:
    """One on_lost, and no commit."""
    program.member.assign(ALL)
    program.read(6)
    waits = program.member.lose()
    found = program.interrupted(number, program.poll)
    program.poll_until(waits)
    program.saw(("assigned", ALL), ("lost", ALL))
    assert program.member.committed_of == BEGIN
    assert not program.one.assignment()
    program.delivered.clear()
    program.member.assign(ALL)
    program.read(RECORDS_LEFT)
    program.check_deliveries()
    program.saw(("assigned", ALL))
    return found


def _end(program: Program, number: int, end: Callable[[], object]) -> Interrupter:
    program.member.assign(ALL)
    program.read(6)
    found = program.interrupted(number, end)
    end()
    program.saw(("assigned", ALL), ("revoked", ALL))
    program.check_commits(ALL)
    assert program.member.closed
    return found


def unsubscription(program: Program, number: int) -> Interrupter:
    """It can be called again, and the consumer used again."""
    found = _end(program, number, program.one.unsubscribe)
    program.one.poll(0)
    assert not program.one.assignment()
    program.subscribe()
    program.member.assign(ALL)
    program.delivered.clear()
    program.read(RECORDS_LEFT)
    program.check_deliveries()
    program.saw(("assigned", ALL))
    return found


def closing(program: Program, number: int) -> Interrupter:
    """It can be called again."""
    return _end(program, number, program.one.close)


SCENARIOS: Final = [first_assignment, assignment_of_one_more, revocation, loss, unsubscription, closing]
LEAST_POINTS: Final = 150
EACH: Final = int(os.environ.get("AZIMUTH_POINTS", "1"))
COLLECTED_EACH: Final = 50  # a collection takes as long as a few consumers
KINDS: Final = ["automatic commits", "commit in on_revoke", "no commits", "no callbacks"]


@pytest.fixture
def renewed(cluster: MockCluster) -> Iterator[Callable[[str], Program]]:
    """Make consumers one after another; the last one is closed, and the others are gone.

    A process can have about 1,000 of confluent-kafka's clients: each keeps a key of thread-local storage until it is
    collected.
    """
    made: list[Program] = []

    def make(kind: str) -> Program:
        if made:
            made.pop().one.close()
        if next(count) % COLLECTED_EACH == 0:
            gc.collect()
        made.append(Program(cluster, kind))
        return made[-1]

    count = itertools.count()

    yield make
    for one in made:
        one.one.close()


def walk(scenario: Callable[[Program, int], Interrupter], make: Callable[[], Program], numbers: Iterator[int]) -> int:
    """Run a scenario with an interruption at each of these points, until it has fewer; return the last one's number."""
    for number in numbers:
        program = make()
        try:
            found = scenario(program, number)
        except BaseException as error:
            said = f"{scenario.__name__}, point {number} in {program.interrupted_in}: {error!r}"
            raise AssertionError(said) from error
        if not found.raised_in:
            return number
    raise AssertionError("endless")


Scenario = Callable[[Program, int], Interrupter]
CASES: Final[list[tuple[Scenario, str]]] = [(scenario, kind) for scenario in SCENARIOS for kind in KINDS]
IDS: Final = [f"{scenario.__name__}-{kind}" for scenario, kind in CASES]


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "kind"), CASES, ids=IDS)
def test_an_interruption_at_any_point_of_a_rebalance_skips_nothing(
    renewed: Callable[[str], Program], scenario: Scenario, kind: str
) -> None:
    """Each partition is read or released, each callback called once, each record delivered once, no commit ahead.

    All points take 20 minutes; AZIMUTH_POINTS=4 takes each fourth one.
    """
    first = CASES.index((scenario, kind)) % EACH
    assert walk(scenario, lambda: renewed(kind), itertools.count(first, EACH)) > LEAST_POINTS


# One kind for each scenario in the quick run, and each kind in one of them.
QUICK: Final = [(scenario, KINDS[at % len(KINDS)]) for at, scenario in enumerate(SCENARIOS)]


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        pytest.param(*case, id=name, marks=() if case in QUICK else pytest.mark.slow)
        for case, name in zip(CASES, IDS, strict=True)
    ],
)
def test_an_interruption_at_some_points_of_a_rebalance_skips_nothing(
    renewed: Callable[[str], Program], scenario: Scenario, kind: str
) -> None:
    """As above, at other points for each case."""
    first = CASES.index((scenario, kind))
    assert walk(scenario, lambda: renewed(kind), itertools.count(first, len(CASES))) > LEAST_POINTS
