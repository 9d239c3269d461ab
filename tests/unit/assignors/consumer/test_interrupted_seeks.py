"""A signal interrupts `seek` or `pause`: the records that were read ahead are delivered all the same."""

import copy
import itertools
from collections.abc import Callable
from typing import Any, Final

import pytest
from confluent_kafka import TopicPartition

from assignors import GroupConsumer
from assignors.consumer import read_ahead, records_in_hand
from producer.testing import MockCluster
from tests.records import offsets
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.unit.assignors.consumer.interruption_points import Interrupter

FIRST: Final = TopicPartition("t", 0)
# Those in loops over records, each of which has thousands of points.
SPARED: Final = frozenset({__file__, copy.__file__, read_ahead.__file__, records_in_hand.__file__})


def _seek(one: GroupConsumer) -> None:
    one.seek(TopicPartition("t", 0, 0))


def _pause(one: GroupConsumer) -> None:
    one.pause([FIRST])


@pytest.mark.long
@pytest.mark.parametrize("call", [_seek, _pause])
def test_an_interruption_at_any_point_loses_no_record_read_ahead(
    mock: MockCluster, call: Callable[[GroupConsumer], Any]
) -> None:
    """They had left librdkafka, and the partition continued after them."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        for number in itertools.count():
            for at in one.assignment():
                one.seek(TopicPartition("t", at.partition, 0))
            found = [one.poll(10)]
            while not _ahead(one):
                found.append(one.poll(10))
            interrupter = Interrupter(number, SPARED)
            interrupter.run(lambda: call(one))
            one.resume([FIRST])
            read_now = [message for message in found if message is not None]
            while len({(message.partition(), message.offset()) for message in read_now}) < 3 * RECORDS:
                came = one.poll(2)
                assert came is not None, (number, interrupter.raised_in, _missing(read_now))
                read_now.append(came)
            if not interrupter.raised_in:
                break
        assert number > 10


def _ahead(one: GroupConsumer) -> bool:
    return any(message.partition() == 0 for message in one._kafka_azimuth.fetching.ahead.held())


def _missing(messages: list[Any]) -> dict[int, list[int]]:
    return {key: sorted(set(range(RECORDS)) - set(of)) for key, of in offsets(messages).items()}
