"""Requests and responses against kafka-python's own encoding of the same versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse

from spark_sink.fetch.from_leaders.wire_format import (
    Answered,
    Wanted,
    WireError,
    fetch_request,
    parse_fetch,
)
from spark_sink.ranges.batch_offset import TopicPartition

NAMES = st.text("abcz.-_0", min_size=1, max_size=12)
KEYS = st.builds(TopicPartition, NAMES, st.integers(0, 1000))
WANTED = st.lists(
    st.builds(Wanted, KEYS, st.integers(0, 2**40), st.integers(1, 2**30)), max_size=9, unique_by=lambda one: one.key
)


def encoded(request: FetchRequest, version: int) -> bytes:
    """A request of a version as kafka-python sends it, with its length."""
    request.with_header(correlation_id=7, client_id="me")
    return bytes(request.encode(version=version, header=True, framed=True))


@given(wanted=WANTED, committed=st.booleans(), rack=NAMES)
def test_a_fetch_request_is_that_of_another_client(wanted: list[Wanted], *, committed: bool, rack: str) -> None:
    """A field in the wrong place asks the broker for something else."""
    by_topic: dict[str, list[Wanted]] = {}
    for one in wanted:
        by_topic.setdefault(one.key.topic, []).append(one)
    topic, partition = FetchRequest.FetchTopic, FetchRequest.FetchTopic.FetchPartition
    expected = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=8 << 20,
        isolation_level=int(committed),
        rack_id=rack,
        topics=[
            topic(
                topic=name,
                partitions=[
                    partition(partition=one.key.partition, fetch_offset=one.offset, partition_max_bytes=one.most)
                    for one in parts
                ],
            )
            for name, parts in by_topic.items()
        ],
    )
    made = fetch_request(7, "me", wanted, wait_ms=100, most=8 << 20, committed=committed, rack=rack)
    assert made == encoded(expected, 11)


PARTITIONS = st.lists(
    st.tuples(
        KEYS,
        st.sampled_from([0, 1, 3, 6]),
        st.sampled_from([None, 0, 2]),
        st.integers(-1, 3),
        st.one_of(st.none(), st.binary(max_size=40)),
    ),
    max_size=6,
    unique_by=lambda one: one[0],
)


def response(parts: list[tuple[TopicPartition, int, int | None, int, bytes | None]], error: int = 0) -> bytes:
    """A response as a broker sends it, after its length and number."""
    topic = FetchResponse.FetchableTopicResponse
    partition = topic.PartitionData
    found = FetchResponse(
        throttle_time_ms=0,
        error_code=error,
        session_id=0,
        responses=[
            topic(
                topic=key.topic,
                partitions=[
                    partition(
                        partition_index=key.partition,
                        error_code=code,
                        high_watermark=9,
                        last_stable_offset=8,
                        log_start_offset=1,
                        aborted_transactions=None
                        if aborted is None
                        else [partition.AbortedTransaction(producer_id=1, first_offset=2)] * aborted,
                        preferred_read_replica=replica,
                        records=records,
                    )
                ],
            )
            for key, code, aborted, replica, records in parts
        ],
    )
    return bytes(found.encode(version=11))


@given(PARTITIONS)
def test_a_fetch_response_is_read_as_it_was_written(
    parts: list[tuple[TopicPartition, int, int | None, int, bytes | None]],
) -> None:
    """The records lie in the response, where they are decoded without a copy."""
    content = response(parts)
    found = parse_fetch(memoryview(content))
    assert [content[one.begin : one.begin + one.size] for one in found] == [records or b"" for *_, records in parts]
    assert [(one.key, one.error, one.aborted, one.replica) for one in found] == [
        (key, code, bool(aborted), replica) for key, code, aborted, replica, _ in parts
    ]


def test_an_error_of_the_whole_request_is_raised() -> None:
    """Its list of partitions is empty, which would pass for nothing to read."""
    with pytest.raises(WireError, match="error 70"):
        parse_fetch(memoryview(response([], 70)))


@given(PARTITIONS, st.data())
def test_a_damaged_response_is_an_error_or_stays_inside(
    parts: list[tuple[TopicPartition, int, int | None, int, bytes | None]], data: st.DataObject
) -> None:
    """A length that points outside would be read from the memory of the process."""
    content = bytearray(response(parts))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[at] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    try:
        found: list[Answered] = parse_fetch(memoryview(content))
    except WireError:
        return
    assert all(one.begin >= 0 and one.size >= 0 and one.begin + one.size <= len(content) for one in found)
