"""Metadata requests and responses against kafka-python's own encoding of the same versions."""

import uuid
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from spark_sink.fetch.from_leaders.metadata_format import metadata_request, parse_metadata
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.ranges.batch_offset import TopicPartition

VERSIONS = {False: 7, True: 10}
NAMES = st.one_of(st.text("abcz.-_0", min_size=1, max_size=12), st.integers(120, 249).map(lambda size: "n" * size))
BOTH = pytest.mark.parametrize("ids", [False, True])
TOPIC = MetadataResponse.MetadataResponseTopic
PARTITION = TOPIC.MetadataResponsePartition


@BOTH
@given(topics=st.lists(NAMES, min_size=1, max_size=200, unique=True))
def test_a_metadata_request_is_that_of_another_client(topics: list[str], *, ids: bool) -> None:
    """It names the topics, and must not create them."""
    named = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    expected = MetadataRequest(topics=named, allow_auto_topic_creation=False)
    expected.with_header(correlation_id=7, client_id="me")
    encoded = expected.encode(version=VERSIONS[ids], header=True, framed=True)
    assert metadata_request(7, "me", topics, ids=ids) == bytes(encoded)


def response(*, ids: bool, more: int = 0) -> tuple[bytes, dict[str, uuid.UUID]]:
    """A response as a broker sends it, after its length and number, and the ids of its topics."""
    leaders = [(0, 0, 1), (0, 1, -1), (5, 2, 1), (0, 3, 2), (0, 4, 9), *((0, 10 + one, 1) for one in range(more))]
    known = {"t": uuid.uuid4(), "gone": uuid.uuid4(), "old": uuid.UUID(int=0)}
    partitions = [
        PARTITION(
            error_code=error,
            partition_index=number,
            leader_id=leader,
            leader_epoch=3,
            replica_nodes=[1, 2],
            isr_nodes=[1],
            offline_replicas=[],
        )
        for error, number, leader in leaders
    ]
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=number, host=f"h{number}", port=9000 + number, rack=rack)
        for number, rack in ((1, None), (2, "zone"))
    ]
    found = MetadataResponse(
        throttle_time_ms=0,
        brokers=brokers,
        cluster_id="c",
        controller_id=1,
        topics=[
            TOPIC(error_code=0, name="t", topic_id=known["t"], is_internal=False, partitions=partitions),
            TOPIC(error_code=3, name="gone", topic_id=known["gone"], is_internal=False, partitions=[]),
            TOPIC(error_code=0, name="old", topic_id=known["old"], is_internal=False, partitions=[]),
        ],
    )
    tags = b"\0" if ids else b""  # of the response's head, in the compact form
    return tags + bytes(found.encode(version=VERSIONS[ids])), known


@BOTH
@pytest.mark.parametrize("more", [0, 200])
def test_metadata_is_read_as_it_was_written(more: int, *, ids: bool) -> None:
    """A partition without a leader, with an error, or with a leader that the broker does not list is left out."""
    content, known = response(ids=ids, more=more)
    read = parse_metadata(memoryview(content), ids=ids)
    assert read.brokers == {1: ("h1", 9001), 2: ("h2", 9002)}
    assert read.leaders == {
        TopicPartition("t", 0): 1,
        TopicPartition("t", 3): 2,
        **{TopicPartition("t", 10 + one): 1 for one in range(more)},
    }
    assert read.ids == ({"t": b64encode(known["t"].bytes).decode().rstrip("=")} if ids else {})


@BOTH
@given(data=st.data())
def test_a_damaged_response_is_an_error_or_stays_inside(data: st.DataObject, *, ids: bool) -> None:
    """A length that points outside would be read from the memory of the process."""
    content = bytearray(response(ids=ids)[0])
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[at] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    try:
        parse_metadata(memoryview(bytes(content)), ids=ids)
    except WireError:
        return
