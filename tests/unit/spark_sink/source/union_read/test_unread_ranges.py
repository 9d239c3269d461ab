"""The offsets that tables lack: from exactly their positions to the ends of the logs."""

import contextlib
from collections.abc import Collection, Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import DataLossError, FetchError, JoinError
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.sink.batch_against_table import identity_number
from spark_sink.source.union_read import unread_ranges
from spark_sink.source.union_read.unread_ranges import find_unread, unread

KEYS = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3))
LOGS = st.dictionaries(KEYS, st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).map(sorted))


@given(logs=LOGS, known=st.sets(KEYS))
def test_each_offset_is_below_the_position_or_in_one_range(
    logs: dict[TopicPartition, list[int]], known: set[TopicPartition]
) -> None:
    """A partition that the tables do not know is read from the beginning of its log; one without a log is left out."""
    positions = {key: middle for key, (_, middle, _) in logs.items() if key in known}
    beginnings = {key: first for key, (first, _, _) in logs.items()}
    ends = {key: end for key, (_, _, end) in logs.items()}
    found = unread(positions | {TopicPartition("deleted", 0): 7}, beginnings, ends)
    assert found == sorted(found)
    assert len({one.key for one in found}) == len(found)
    read = {(one.key, at) for one in found for at in range(one.begin, one.end)}
    assert read == {(key, at) for key, end in ends.items() for at in range(positions.get(key, beginnings[key]), end)}


def test_a_log_that_ends_before_the_position_is_refused() -> None:
    """Its offsets are those of other records."""
    key = TopicPartition("t", 1)
    with pytest.raises(DataLossError, match=r"t/1: the table has come to offset 5, and the log ends at 4: is it"):
        unread({key: 5}, {}, {key: 4})


class _Logs:
    """The topic `x` with two partitions of nine records."""

    def __init__(self, ids: Mapping[str, str], refused: str = "") -> None:
        self._ids = ids
        self._refused = refused

    def check_rights(self, topics: Collection[str]) -> None:
        if self._refused in topics:
            raise JoinError(f"topic {self._refused!r} is refused to this user")

    def subscribed(self) -> set[TopicPartition]:
        return {TopicPartition("x", 0), TopicPartition("x", 1)}

    def identities(self, _topics: Collection[str]) -> Mapping[str, str]:
        return self._ids

    def ends(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(keys, 9)

    def beginnings(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(keys, 0)


@pytest.mark.parametrize(("position", "begins"), [(3, 3), (4, None), (9, None)])
def test_a_table_may_have_come_into_a_transaction_that_is_still_open(
    position: int, begins: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents that read uncommitted records do; the error said that the topic was recreated."""
    options = SourceOptions.parse({"kafka.bootstrap.servers": "h:9", "subscribe": "x"}, stream=False)

    class Open(_Logs):
        """A transaction is open from offset 4 on; a reader of uncommitted records comes to offset 9."""

        def __init__(self, isolation: str | None) -> None:
            super().__init__({})
            self._end = 9 if isolation == "read_uncommitted" else 4

        def ends(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, int]:
            return dict.fromkeys(keys, self._end)

    @contextlib.contextmanager
    def logs(asked: SourceOptions) -> Iterator[_Logs]:
        yield Open(asked.kafka.get("isolation.level"))

    monkeypatch.setattr(unread_ranges, "_offsets", logs)
    monkeypatch.setattr(unread_ranges, "_PATIENCE_S", 0.0)
    found = find_unread(options, {TopicPartition("x", 0): position}, {}).ranges
    assert found == [*([] if begins is None else [Range("x", 0, begins, 4)]), Range("x", 1, 0, 4)]
    with pytest.raises(DataLossError, match="come to offset 10, and the log ends at 4"):
        find_unread(options, {TopicPartition("x", 0): 10}, {})


@pytest.mark.parametrize("now", ["c/first", "c/a+b/c", "c/third", None])
def test_a_recreated_topic_of_a_fleet_has_another_name_in_the_table(
    now: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fleets write it as `<name>@<topic id>`; without the id it is unknown which rows are of this log."""
    options = SourceOptions.parse({"kafka.bootstrap.servers": "h:9", "subscribe": "x"}, stream=False)

    @contextlib.contextmanager
    def logs(_options: object) -> Iterator[_Logs]:
        yield _Logs({} if now is None else {"x": now})

    monkeypatch.setattr(unread_ranges, "_offsets", logs)
    positions = {TopicPartition("x", 0): 7, TopicPartition("x@a-b_c", 0): 3}
    known = {"x": identity_number("c/first")}
    if now is None:
        with pytest.raises(FetchError, match="x: the topic was recreated, and the brokers do not answer"):
            find_unread(options, positions, known)
        assert find_unread(options, {TopicPartition("x", 0): 7}, known).labels == {"x": "x"}
    elif now == "c/third":
        with pytest.raises(DataLossError, match="x: the topic was deleted and recreated"):
            find_unread(options, positions, known)
    else:
        found = find_unread(options, positions, known)
        label, begin = ("x", 7) if now == "c/first" else ("x@a-b_c", 3)
        assert found.labels == {"x": label}
        assert found.ranges == [Range("x", 0, begin, 9), Range("x", 1, 0, 9)]


def test_a_topic_of_the_table_that_this_user_may_not_describe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks as if it did not exist, and without its tail rows would be missing; a deleted one has no tail."""
    options = SourceOptions.parse({"kafka.bootstrap.servers": "h:9", "subscribe": "x,gone,secret"}, stream=False)

    @contextlib.contextmanager
    def logs(_options: object) -> Iterator[_Logs]:
        yield _Logs({}, refused)

    monkeypatch.setattr(unread_ranges, "_offsets", logs)
    refused = "secret"
    with pytest.raises(JoinError, match="topic 'secret' is refused to this user"):
        find_unread(options, {}, {})
    refused = ""
    assert len(find_unread(options, {}, {}).ranges) == 2
