"""Records read ahead, against a plain list of them."""

import itertools
import operator
import sys
from typing import Any

from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from assignors.consumer.read_ahead import ReadAhead, first_offsets, in_order, is_read, key_of_message
from producer.testing import MockCluster
from tests.records import offsets
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.unit.assignors.consumer.interruption_points import Interrupter, Interruption

_STEPS = st.one_of(
    st.tuples(st.just("hold"), st.integers(0, 9)),
    st.tuples(st.just("hold_batches"), st.integers(0, 9), st.integers(1, 4)),
    st.tuples(st.just("poll")),
    st.tuples(st.just("batch")),
    st.tuples(st.just("join")),
    st.tuples(st.just("drop"), st.integers(0, 2)),
    st.tuples(st.just("put_first"), st.integers(0, 3)),
    st.tuples(st.just("clear")),
)


_PLACES = st.tuples(st.integers(0, 2), st.integers(0, 30), st.booleans())


@given(st.lists(_PLACES, max_size=30, unique_by=lambda one: one[:2]))
def test_records_in_order_are_the_same_and_each_partition_keeps_its_places(places: list[tuple[int, int, bool]]) -> None:
    """Errors, which belong to no position, stay where they are."""
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    given_ = [
        Message(topic="t", partition=partition, offset=at, error=error if fails else None)
        for partition, at, fails in places
    ]
    found = in_order(given_)
    assert [(key_of_message(one), is_read(one)) for one in found] == [
        (key_of_message(one), is_read(one)) for one in given_
    ]
    assert sorted(map(id, found)) == sorted(map(id, given_))
    for partition in range(3):
        ordered = [one.offset() for one in found if is_read(one) and one.partition() == partition]
        assert ordered == sorted(ordered, key=lambda at: at or 0)
    assert all(one is other for one, other in zip(found, given_, strict=True) if not is_read(other))


@given(st.lists(_STEPS, max_size=20))
def test_no_step_loses_doubles_or_reorders_a_record(steps: list[tuple[Any, ...]]) -> None:
    """Whatever is held, cut into batches and joined again comes in the order of a list that had the same steps."""
    ahead, numbers = ReadAhead(), itertools.count()
    model: list[Message] = []

    def new(count: int) -> list[Message]:
        return [Message(topic="t", partition=n % 3, offset=n) for n in itertools.islice(numbers, count)]

    for name, *rest in steps:
        if name == "hold":
            model = new(rest[0])
            ahead.hold(list(model))
        elif name == "hold_batches":
            model = new(rest[0])
            size = rest[1]
            ahead.hold_batches([model[at : at + size] for at in range(0, len(model) + size, size)], size)
        elif name == "poll":
            ahead.join_batches()
            polled = list(itertools.islice(ahead.records, 1))
            assert list(map(id, polled)) == list(map(id, model[:1]))
            del model[:1]
        elif name == "batch":
            batch = ahead.next_batch()
            assert list(map(id, batch)) == list(map(id, model[: len(batch)]))
            assert batch or not ahead.batch_size or not model
            del model[: len(batch)]
        elif name == "join":
            ahead.join_batches()
        elif name == "drop":
            ahead.drop([("t", rest[0])])
            model = [one for one in model if one.partition() != rest[0]]
        elif name == "put_first":
            ahead.put_first(added := new(rest[0]))
            model = [*added, *model]
        else:
            ahead.clear()
            model = []
        assert bool(ahead.left()) == bool(model)
        assert ahead.left() >= len(model)
        assert ahead.next_offsets() == first_offsets(model)
        assert not (operator.length_hint(ahead.records) and operator.length_hint(ahead.batches))
    ahead.join_batches()
    assert list(map(id, ahead.records)) == list(map(id, model))


def test_a_second_signal_while_an_interrupted_change_ends_loses_no_record() -> None:
    """The first one comes within the change, the second one at the first point at which the handler allows it."""
    messages = [Message(topic="t", partition=n % 3, offset=n) for n in range(9)]
    ahead = ReadAhead()
    ahead.hold(messages)

    def interrupt(_: list[Message]) -> list[Message]:
        frame = sys._getframe(1)
        interrupter.begin([frame])
        raise Interruption

    for number in itertools.count():
        interrupter = Interrupter(number, frozenset())
        try:
            ahead._replace(interrupt)
        except Interruption:
            sys.settrace(None)
            sys.setprofile(None)
        assert ahead.held() == messages, interrupter.raised_in
        if not interrupter.raised_in:
            break


def test_calls_that_need_different_numbers_get_each_record_once_and_in_order(mock: MockCluster) -> None:
    """A program may change from `poll` to `consume`, and its number, while records are cut for another one."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        found: list[Message] = []
        for turn in itertools.count():
            size = (0, 7, 7, 7, 3, 7, 7, 1, 20)[turn % 9]
            taken = one.consume(size, 0.2) if size else [m for m in [one.poll(0.2)] if m is not None]
            assert len(taken) <= max(1, size)
            found += taken
            if len(found) >= 3 * RECORDS or turn > 500:
                break
        assert one.poll(0.1) is None
    assert offsets(found) == {n: list(range(RECORDS)) for n in range(3)}
