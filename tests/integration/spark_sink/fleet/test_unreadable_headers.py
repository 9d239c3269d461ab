"""Headers that confluent-kafka cannot return, as real brokers deliver them."""

import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from kafka import KafkaProducer

from spark_sink.demo.cluster import Cluster
from spark_sink.fleet.unwritten_records import RecordBuffer


class _Latin1(str):
    """A name that producers in other languages may send."""

    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        return b"tr\xe9s"


@pytest.mark.integration
@pytest.mark.parametrize("kept", [True, False], ids=["headers are kept", "headers are left out"])
def test_a_header_name_that_is_no_utf8_stops_no_source(cluster: Cluster, topic: Callable[..., str], kept: bool) -> None:  # noqa: FBT001 -- a case
    """The reader of all topics of a source ended at such a record, and at each restart again."""
    name = topic("latin", 1)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers.split(","))
    for headers in ([(_Latin1("x"), b"1")], [("a", b"1"), (_Latin1("x"), b"2")], [("a", b"3")]):
        producer.send(name, b"value", headers=headers).get(30)
    producer.close()
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": uuid.uuid4().hex})
    consumer.assign([TopicPartition(name, 0, 0)])
    messages: list[Message] = []
    while len(messages) < 3:
        messages += consumer.consume(3, 30)
    consumer.close()
    buffer = RecordBuffer(include_headers=kept)
    for message in messages:
        buffer.add(name, message)
    rows = buffer.rows({name}).to_pylist()
    assert [row["offset"] for row in rows] == [0, 1, 2]
    if kept:
        names = [[header["key"] for header in row["headers"]] for row in rows]
        assert names == [["azimuth.unreadable_headers"], ["azimuth.unreadable_headers"], ["a"]]
