"""Records on their way to the program, against a plain list of lists."""

from typing import Any

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from assignors.consumer.read_ahead import ReadAhead, key_of_message
from assignors.consumer.records_in_hand import RecordsInHand
from assignors.planner.topics_and_members import TopicPartition

PARTITIONS = 3
_STEPS = st.one_of(
    st.tuples(st.sampled_from(["take", "leave"]), st.lists(st.integers(0, 20), max_size=4).map(sorted)),
    st.tuples(st.just("release"), st.integers(0, 3)),
    st.tuples(st.just("return"), st.just(0)),
    st.tuples(st.just("withdraw"), st.integers(0, 3)),
    st.tuples(st.just("drop"), st.sets(st.integers(0, PARTITIONS - 1))),
)


@given(st.lists(_STEPS, max_size=20))
def test_positions_are_before_each_list_and_each_left_list_returns(steps: list[tuple[str, Any]]) -> None:
    """Also one that has lost all its records meanwhile: it does not hide the lists after it."""
    held = RecordsInHand(ReadAhead())
    taken: list[list[Message]] = []
    left: list[list[Message]] = []
    for name, given_ in steps:
        if name in {"take", "leave"}:
            records = [Message(topic="t", partition=at % PARTITIONS, offset=at) for at in given_]
            (held.take if name == "take" else held.left.append)(records)
            (taken if name == "take" else left).append(records)
        elif name == "release" and given_ < len(taken):
            held.release(taken.pop(given_))
        elif name == "return" and left:
            assert held.left.popleft() is left.pop(0)
        elif name == "withdraw" and given_ < len(taken):
            first = _first([taken[given_]])
            others = [one for one in taken + left if one is not taken[given_]]
            later = [one for records in others for one in records if _at(one) >= first.get(key_of_message(one), 99)]
            assert sorted(map(id, held.withdraw(taken[given_]))) == sorted(map(id, later))
            assert not {id(one) for records in others for one in records} & set(map(id, later))
        elif name == "drop":
            keys = {("t", partition) for partition in given_}
            expected = {key: at for key, at in _first(taken + left).items() if key in keys}
            assert held.drop(keys) == expected
            assert not _first(taken + left).keys() & keys
        assert held.first_offsets() == _first(taken + left)
        assert list(held.left) == left


def _at(message: Message) -> int:
    at = message.offset()
    assert at is not None
    return at


def _first(lists: list[list[Message]]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for one in (one for records in lists for one in records):
        key, at = key_of_message(one), one.offset()
        assert at is not None
        found[key] = min(at, found.get(key, at))
    return found
