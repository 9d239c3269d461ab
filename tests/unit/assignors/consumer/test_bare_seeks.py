"""What is committed after a seek, and after a begin without records, as confluent_kafka.Consumer commits it."""

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, Producer, TopicPartition

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, Case, at, attempt, check, plain, read
from tests.waiting import wait_until

pytestmark = pytest.mark.long

ALL: Final = [at(0), at(1), at(2)]
OFFSETS: Final = {"forward": 48, "backward": 42, "end": OFFSET_END, "beginning": OFFSET_BEGINNING}
AUTOMATIC: Final[dict[str, Any]] = {"enable.auto.commit": True, "auto.commit.interval.ms": 3_600_000}


def _commit(one: Any) -> Any:
    return attempt(lambda: plain(one.commit(asynchronous=False)))


def _commit_later(one: Any) -> None:
    one.commit()
    wait_until(lambda: one.committed([at(0)], 10)[0].offset >= 0, 20)  # a poll might deliver a record after the seek


def _go_on(one: Any) -> Any:
    return [read(one, 1), _commit(one)]


def _again(one: Any) -> Any:
    one.seek(at(0, 45))
    return _commit(one)


def _leave(one: Any) -> None:
    one.unsubscribe()
    one.poll(0.1)


def _pause(one: Any) -> None:
    one.pause([at(0)])
    one.resume([at(0)])


# Without a record after a seek to the end, and where the bare client takes no assign().
SILENT: Final = "consume and commit"
WHOLE: Final = frozenset({"unassign", "assign again"})
THEN: Final[dict[str, Callable[[Any], Any]]] = {
    "close": lambda _: None,
    "commit": _commit,
    "commit later": _commit_later,
    "consume and commit": _go_on,
    "seek again and commit": _again,
    "unsubscribe": _leave,
    "unassign": lambda one: one.unassign(),
    "assign again": lambda one: one.assign([at(0, 47)]),
    "pause and resume": _pause,
}


def after_a_seek(bench: Bench, offset: int, then: Callable[[Any], Any], config: dict[str, Any]) -> Any:
    """Offsets 40 to 43 were delivered; what the group has at the end."""
    group = f"seek-{bench.kind.__name__}-{time.monotonic()}"
    one = bench.make(**SHORT, **config, **{"group.id": group})
    one.subscribe(
        ["t"],
        on_assign=lambda own, _: own.assign([at(0, 40)]),
        on_revoke=lambda own, _: None if config else _commit(own),  # an error in the bare client if nothing is new
    )
    read(one, 4)
    one.seek(at(0, offset))
    found = then(one)
    one.close()
    return [found, plain(bench.make(**{"group.id": group}).committed(ALL, 10))]


CASES: Final[dict[str, Case]] = {
    f"{then} after a seek {where}": partial(after_a_seek, offset=OFFSETS[where], then=THEN[then], config=AUTOMATIC)
    for where, then in itertools.product(["forward", "backward"], THEN)
}


@pytest.mark.parametrize("config", [AUTOMATIC, {}], ids=["automatic commits", "commit in on_revoke"])
@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_seek_changes_no_commit_until_the_next_record(
    cluster: MockCluster, where: str, then: str, config: dict[str, Any]
) -> None:
    """A program that skips records, and one that looks back, must not commit what it has not read."""
    check(lambda bench: after_a_seek(bench, OFFSETS[where], THEN[then], config), cluster)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "then"), [("beginning", then) for then in THEN] + [("end", then) for then in THEN if then != SILENT]
)
def test_nor_does_one_to_an_end_of_the_log(cluster: MockCluster, where: str, then: str) -> None:
    """The constants name offsets that are known later."""
    check(lambda bench: after_a_seek(bench, OFFSETS[where], THEN[then], AUTOMATIC), cluster)


@pytest.mark.slow
@pytest.mark.parametrize("then", sorted(THEN.keys() - WHOLE - {SILENT}))
@pytest.mark.parametrize("where", OFFSETS)
def test_the_same_holds_where_the_broker_assigns(cluster: MockCluster, where: str, then: str) -> None:
    """With group.protocol=consumer librdkafka keeps the membership; the bare client takes no assign() there."""

    def case(bench: Bench) -> Any:
        group = f"seek-{bench.kind.__name__}-{time.monotonic()}"
        config: dict[str, Any] = {**AUTOMATIC, "group.id": group}
        one, _ = bench.joined(**config)
        one.seek(at(0, OFFSETS[where]))
        found = THEN[then](one)
        one.close()
        return [found, plain(bench.make(**{"group.id": group}).committed(ALL, 10))]

    check(case, cluster, "consumer")


def begins(bench: Bench, offsets: list[int], records: int) -> Any:
    """What the group has after a begin at these offsets and so many records."""
    group = f"begin-{bench.kind.__name__}-{time.monotonic()}"
    one = bench.make(**SHORT, **AUTOMATIC, **{"group.id": group})
    assigned: list[Any] = []

    def on_assign(own: Any, _: Any) -> None:
        own.assign([at(number, offset) for number, offset in enumerate(offsets)])
        if not records:
            own.pause(ALL)
        assigned.append(True)

    one.subscribe(["t"], on_assign=on_assign)
    until = time.monotonic() + 20
    while not assigned and records == 0:
        assert time.monotonic() < until
        one.poll(0)
    read(one, records)
    one.close()
    return plain(bench.make(**{"group.id": group}).committed(ALL, 10))


def _progress(one: Any) -> Any:
    """The group's offsets after a commit without arguments, which raises in the bare client if none has got further."""
    _commit(one)
    return plain(one.committed(ALL, 10))


def _back(one: Any, offset: int = 10) -> None:
    """Deliver the record at this offset, and no other."""
    one.pause(one.assignment())
    one.seek(at(0, offset))
    one.resume([at(0)])
    found: list[Any] = []
    until = time.monotonic() + 20
    while not found:
        assert time.monotonic() < until
        found = one.consume(1, 0.1)
    one.pause([at(0)])
    assert (found[0].partition(), found[0].offset()) == (0, offset)


def _of_group(bench: Bench, name: str, offset: int | None = None) -> str:
    if offset is not None:
        one = bench.make(**{"group.id": name})
        one.commit(offsets=[at(0, offset), at(1, RECORDS), at(2, RECORDS)], asynchronous=False)
        one.close()
    return name


def back_behind_an_own_commit(bench: Bench) -> Any:
    """A second look at old records is not taken for progress."""
    one, _ = bench.joined(**SHORT)
    found = [_progress(one)]
    _back(one)
    found.append(_progress(one))
    one.commit()
    one.commit(offsets=[at(1, RECORDS)], asynchronous=False)  # answered after the one before
    found.append(plain(one.committed(ALL, 10)))
    one.resume([at(0)])
    read(one, RECORDS - 11)
    return [*found, _progress(one)]


def back_behind_what_the_group_had(bench: Bench) -> Any:
    """Also where another member has committed it."""
    group = _of_group(bench, f"had-{bench.kind.__name__}", 40)
    one, _ = bench.joined(1, **SHORT, **{"group.id": group})
    _back(one)
    return _progress(one)


def back_where_the_program_says_where_to_begin(bench: Bench) -> Any:
    """The group's offset is not asked for then."""
    group = _of_group(bench, f"begin-{bench.kind.__name__}", 40)
    one = bench.make(**SHORT, **{"group.id": group})
    one.subscribe(["t"], on_assign=lambda own, _: own.assign([at(0, 10), at(1, RECORDS), at(2, RECORDS)]))
    read(one, 1)
    one.pause([at(0)])
    return _progress(one)


def back_after_another_assign(bench: Bench) -> Any:
    """It holds for as long as the consumer lives."""
    one, _ = bench.joined(**SHORT)
    found = [_progress(one)]
    one.unassign()
    one.poll(0.1)
    one.assign([at(0, 10)])
    _back(one)
    return [*found, _progress(one)]


def back_by_hand(bench: Bench) -> Any:
    """So it is without a group."""
    one = bench.make()
    one.assign([at(0, 0), at(1, 40)])
    read(one, RECORDS + 10)
    found = [_progress(one)]
    _back(one)
    return [*found, _progress(one)]


def back_by_name(bench: Bench) -> Any:
    """A record or offsets say what the group shall have, and progress counts from there."""
    one, records = bench.joined(**SHORT)
    third = next(m for m in records if (m.partition(), m.offset()) == (0, 3))
    found = [_progress(one)]
    for named in ({"message": third}, {"offsets": [at(0, 7)]}, {"offsets": [at(0, 60)]}):
        one.commit(**named, asynchronous=False)
        found += [plain(one.committed(ALL, 10)), _progress(one)]
    one.commit(third, asynchronous=False)
    _back(one)
    return [*found, _progress(one)]


def stored_back(bench: Bench) -> Any:
    """So it is with stored offsets."""
    one, _ = bench.joined(**SHORT, **{"enable.auto.offset.store": False})
    found: list[Any] = []
    for offset in (9, 5, 12, 3):
        one.store_offsets(offsets=[at(0, offset)])
        found.append(_progress(one))
    return found


def _automatic(bench: Bench, one: Any, group: str, go_back: Callable[[], None], before: int = RECORDS) -> Any:
    wait_until(lambda: one.poll(0.05) is None and one.committed([at(0)], 10)[0].offset == before, 20)
    go_back()
    until = time.monotonic() + 0.5  # several intervals
    while time.monotonic() < until:
        one.poll(0.05)
    found = [plain(one.committed([at(0)], 10))]
    one.close()
    return [*found, plain(bench.make(**{"group.id": group}).committed([at(0)], 10))]


def back_with_automatic_commits(bench: Bench) -> Any:
    """None goes back while the partition is kept; the last one names the last delivered record, wherever that was."""
    group = f"automatic-{bench.kind.__name__}"
    often: dict[str, Any] = {"enable.auto.commit": True, "auto.commit.interval.ms": 100, "group.id": group}
    one, _ = bench.joined(**often, **SHORT)
    return _automatic(bench, one, group, lambda: _back(one))


def back_by_hand_with_automatic_commits(bench: Bench) -> Any:
    """So it is without a group."""
    group = f"by-hand-{bench.kind.__name__}"
    one = bench.make(**{"enable.auto.commit": True, "auto.commit.interval.ms": 100, "group.id": group})
    one.assign([at(0, 0)])
    read(one, RECORDS)
    return _automatic(bench, one, group, lambda: _back(one))


def stored_back_with_automatic_commits(bench: Bench) -> Any:
    """So it is with stored offsets."""
    group = f"stored-{bench.kind.__name__}"
    often: dict[str, Any] = {"enable.auto.commit": True, "auto.commit.interval.ms": 100, "group.id": group}
    one, _ = bench.joined(**often, **SHORT, **{"enable.auto.offset.store": False})
    one.store_offsets(offsets=[at(0, 9)])
    return _automatic(bench, one, group, lambda: one.store_offsets(offsets=[at(0, 3)]), 9)


BACKWARD: Final[dict[str, Case]] = {
    body.__name__: body
    for body in (
        back_after_another_assign,
        back_behind_an_own_commit,
        back_behind_what_the_group_had,
        back_by_hand,
        back_by_hand_with_automatic_commits,
        back_by_name,
        back_where_the_program_says_where_to_begin,
        back_with_automatic_commits,
        stored_back,
        stored_back_with_automatic_commits,
    )
}


@pytest.mark.parametrize("name", BACKWARD)
def test_progress_takes_no_offset_of_the_group_back(cluster: MockCluster, name: str) -> None:
    """A program that looks back and dies would repeat what it had committed. A `close` repeats, as the bare one."""
    check(BACKWARD[name], cluster)


@pytest.mark.parametrize(
    ("offsets", "records"),
    [([40, 41, 42], 0), ([RECORDS, RECORDS, 49], 1), ([OFFSET_END, OFFSET_END, 48], 2)],
    ids=["without records", "records of one", "records of one, the others at their end"],
)
def test_a_begin_is_not_committed_before_a_record(cluster: MockCluster, offsets: list[int], records: int) -> None:
    """Another program of the group may have committed later offsets meanwhile."""
    check(lambda bench: begins(bench, offsets, records), cluster)


def positions_after_seeks(bench: Bench) -> Any:
    """Of paused partitions, of one that goes on, and of one that is paused and resumed."""
    one, _ = bench.joined(**SHORT)
    one.pause(one.assignment())
    for partition, offset in enumerate((10, OFFSET_BEGINNING, OFFSET_END)):
        one.seek(at(partition, offset))
    one.poll(0.3)
    found = [plain(one.position(ALL))]
    one.resume([at(0)])
    found += [read(one, 1), plain(one.position(ALL))]
    one.pause([at(0)])
    one.resume([at(0)])
    return [*found, plain(one.position(ALL)), read(one, 1), plain(one.position(ALL))]


def positions_after_a_seek_beyond_the_end(bench: Bench) -> Any:
    """auto.offset.reset has moved on by then, and a transaction that takes the position must not commit the old one."""
    one = bench.make(**{"auto.offset.reset": "latest"})
    one.assign([at(0, 0), at(1, 45)])
    read(one, RECORDS + 5)
    one.seek(at(0, 10_000))
    until = time.monotonic() + 1  # brokers are asked for the end
    while time.monotonic() < until:
        one.poll(0.1)
    return plain(one.position(ALL)), _commit(one)


def positions_at_an_offset_that_was_beyond_the_end(bench: Bench, reset: str) -> Any:
    """The log has grown up to the offset of the seek by then, or the reader has come there from the first record."""
    topic = f"{reset}-{bench.kind.__name__}-{bench.protocol}"
    assert isinstance(bench.cluster, MockCluster)
    bench.cluster.create(topic, [1])
    producer = Producer({"bootstrap.servers": bench.cluster.bootstrap_servers, "log_level": 0})

    def write(records: int) -> None:
        for _ in range(records):
            producer.produce(topic, b"")
        assert producer.flush(20) == 0

    write(RECORDS)
    one = bench.make(**{"auto.offset.reset": reset, **AUTOMATIC})
    one.assign([TopicPartition(topic, 0, 0)])
    read(one, RECORDS)
    one.seek(TopicPartition(topic, 0, RECORDS + 3))
    read(one, RECORDS if reset == "earliest" else 0)
    until = time.monotonic() + 1.5  # brokers are asked where to go on
    while time.monotonic() < until:
        assert one.poll(0.1) is None
    write(3)
    offset = read(one, 3)[-1][1]
    place = [TopicPartition(topic, 0)]
    return offset, one.position(place)[0].offset, _commit(one)[0][2], one.committed(place, 10)[0].offset


@pytest.mark.parametrize("reset", ["earliest", "latest"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_offset_of_a_seek_beyond_the_end_is_a_position_once_the_reader_comes_there(
    cluster: MockCluster, reset: str, protocol: str
) -> None:
    """Else the last records are not committed, and come twice."""
    check(lambda bench: positions_at_an_offset_that_was_beyond_the_end(bench, reset), cluster, protocol)


@pytest.mark.parametrize("case", [positions_after_seeks, positions_after_a_seek_beyond_the_end])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_sought_offset_is_no_position_before_a_record(cluster: MockCluster, case: Case, protocol: str) -> None:
    """A program takes the position for what it has read."""
    check(case, cluster, protocol)


@pytest.mark.parametrize("eof", [True, False], ids=["with ends", "without ends"])
@pytest.mark.parametrize("reset", ["earliest", "latest"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_position_follows_the_records_after_a_seek_to_no_offset(
    cluster: MockCluster,
    reset: str,
    protocol: str,
    eof: bool,  # noqa: FBT001 -- a case
) -> None:
    """OFFSET_INVALID is where auto.offset.reset begins. A transaction after it took no position, and committed none."""

    def case(bench: Bench) -> Any:
        one = bench.make(**{"auto.offset.reset": reset, "enable.partition.eof": eof})
        one.assign([at(0, 0), at(1, 45)])
        read(one, RECORDS + 5 + 2 * eof)
        one.seek(at(0, OFFSET_INVALID))
        expected = RECORDS * (reset == "earliest") + eof
        found = [read(one, expected), one.consume(1, 0.5), plain(one.position([at(0)])), _commit(one)]
        one.seek(at(0, OFFSET_INVALID))
        return [*found, plain(one.position([at(0)])), plain(one.committed([at(0), at(1)], 10))]

    check(case, cluster, protocol)


@pytest.mark.parametrize("reset", ["earliest", "latest", "smallest"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_seek_to_no_offset_does_not_go_to_the_offset_of_the_group(
    cluster: MockCluster, reset: str, protocol: str
) -> None:
    """An assignment at OFFSET_INVALID begins there; a seek goes where auto.offset.reset says."""

    def case(bench: Bench) -> Any:
        one = bench.make(**{"auto.offset.reset": reset})
        one.assign([at(0, 0)])
        read(one, RECORDS)
        one.commit(offsets=[at(0, 20)], asynchronous=False)
        one.seek(at(0, OFFSET_INVALID))
        found = [message.offset() for message in one.consume(RECORDS, 2.0)]
        one.seek(at(0, 30))
        return found, read(one, 5)[0], plain(one.committed([at(0)], 10))

    check(case, cluster, protocol)
