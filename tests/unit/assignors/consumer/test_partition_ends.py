"""The end of a partition (`enable.partition.eof`) belongs to the position at which it was reached."""

from confluent_kafka import KafkaError, Message, TopicPartition

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS, consumer


def _error(code: int) -> Message:
    return Message(topic="t", partition=0, offset=RECORDS, error=KafkaError(code))


def _code_and_offset(message: Message | None) -> tuple[int | None, int | None]:
    assert message is not None
    error = message.error()
    return None if error is None else error.code(), message.offset()


def test_no_end_is_delivered_between_a_seek_and_its_records(mock: MockCluster) -> None:
    """A program that reads until the end would stop before the records that it sought; other errors stay."""
    one = consumer(mock, **{"enable.partition.eof": True})
    one.assign([TopicPartition("t", 0, 0)])
    assert one.poll(20) is not None
    one._kafka_azimuth.fetching.ahead.put_first(
        [_error(KafkaError._PARTITION_EOF), _error(KafkaError.UNKNOWN_TOPIC_OR_PART)]
    )
    one.seek(TopicPartition("t", 0, RECORDS - 3))
    found = [one.poll(20) for _ in range(5)]
    one.close()
    assert [_code_and_offset(message) for message in found] == [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, RECORDS),
        *((None, offset) for offset in range(RECORDS - 3, RECORDS)),
        (KafkaError._PARTITION_EOF, RECORDS),
    ]
