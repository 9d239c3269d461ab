"""Fetch requests and responses against kafka-python's own encoding of the same versions."""

import uuid
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from spark_sink.fetch.from_leaders.fetch_format import (
    Answered,
    Wanted,
    fetch_request,
    ids_in_bytes,
    parse_fetch,
    parse_versions,
    versions_request,
)
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.ranges.batch_offset import TopicPartition

NAMES = st.one_of(st.text("abcz.-_0", min_size=1, max_size=12), st.integers(120, 249).map(lambda size: "n" * size))
KEYS = st.builds(TopicPartition, NAMES, st.integers(0, 1000))
WANTED = st.lists(
    st.builds(Wanted, KEYS, st.integers(0, 2**40), st.integers(1, 2**30), st.integers(-1, 2**31 - 1)),
    max_size=200,
    unique_by=lambda one: one.key,
)
BOTH = pytest.mark.parametrize("by_id", [False, True])


def ids_of(keys: list[TopicPartition]) -> dict[str, bytes]:
    """An id of each topic, which depends on nothing but its name."""
    return {key.topic: uuid.uuid5(uuid.NAMESPACE_DNS, key.topic).bytes for key in keys}


def encoded(request: FetchRequest | ApiVersionsRequest, version: int) -> bytes:
    """A request of a version as kafka-python sends it, with its length."""
    request.with_header(correlation_id=7, client_id="me")
    return bytes(request.encode(version=version, header=True, framed=True))  # type: ignore[no-untyped-call]


@BOTH
@given(wanted=WANTED, committed=st.booleans(), rack=NAMES)
def test_a_fetch_request_is_that_of_another_client(
    wanted: list[Wanted], *, committed: bool, rack: str, by_id: bool
) -> None:
    """A field in the wrong place asks the broker for something else."""
    by_topic: dict[str, list[Wanted]] = {}
    for one in wanted:
        by_topic.setdefault(one.key.topic, []).append(one)
    ids = ids_of([one.key for one in wanted]) if by_id else None
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
                topic_id=uuid.UUID(bytes=ids[name]) if ids else uuid.UUID(int=0),
                partitions=[
                    partition(
                        partition=one.key.partition,
                        current_leader_epoch=one.epoch,
                        fetch_offset=one.offset,
                        partition_max_bytes=one.most,
                    )
                    for one in parts
                ],
            )
            for name, parts in by_topic.items()
        ],
    )
    made = fetch_request(7, "me", wanted, wait_ms=100, most=8 << 20, committed=committed, rack=rack, ids=ids)
    assert made == encoded(expected, 13 if by_id else 11)


PARTITIONS = st.lists(
    st.tuples(
        KEYS,
        st.sampled_from([0, 1, 3, 6]),
        st.sampled_from([None, 0, 2]),
        st.integers(-1, 3),
        st.one_of(st.none(), st.binary(max_size=40), st.integers(100, 300).map(bytes)),
    ),
    max_size=6,
    unique_by=lambda one: one[0],
)
Parts = list[tuple[TopicPartition, int, int | None, int, bytes | None]]


def response(parts: Parts, error: int = 0, *, by_id: bool = False, tagged: bool = False) -> bytes:
    """A response as a broker sends it, after its length and number."""
    ids = ids_of([key for key, *_ in parts])
    topics = [
        FetchResponse.FetchableTopicResponse(
            topic=key.topic,
            topic_id=uuid.UUID(bytes=ids[key.topic]),
            partitions=[partition(key.partition, code, aborted, replica, records, tagged=tagged)],
        )
        for key, code, aborted, replica, records in parts
    ]
    found = FetchResponse(throttle_time_ms=0, error_code=error, session_id=0, responses=topics)
    head = b"\0" if by_id else b""  # the tags of the response's head, in the compact form
    return head + bytes(found.encode(version=13 if by_id else 11))


def partition(  # noqa: PLR0913 -- as they are drawn
    number: int, code: int, aborted: int | None, replica: int, records: bytes | None, *, tagged: bool
) -> FetchResponse.FetchableTopicResponse.PartitionData:
    """A partition of a response; tagged: with a field of the compact form that only errors have."""
    kind = FetchResponse.FetchableTopicResponse.PartitionData
    transactions = None if aborted is None else [kind.AbortedTransaction(producer_id=1, first_offset=2)] * aborted
    made = kind(
        partition_index=number,
        error_code=code,
        high_watermark=9,
        last_stable_offset=8,
        log_start_offset=1,
        aborted_transactions=transactions,
        preferred_read_replica=replica,
        records=records,
    )
    if tagged:
        made.current_leader = kind.LeaderIdAndEpoch(leader_id=3, leader_epoch=9)
    return made


def parsed(content: bytes, parts: Parts, *, by_id: bool) -> list[Answered]:
    """The response, read as that to a request for these topics."""
    return parse_fetch(memoryview(content), ids_of([key for key, *_ in parts]) if by_id else None)


@pytest.mark.parametrize(("by_id", "tagged"), [(False, False), (True, False), (True, True)])
@given(parts=PARTITIONS)
def test_a_fetch_response_is_read_as_it_was_written(parts: Parts, *, by_id: bool, tagged: bool) -> None:
    """The records lie in the response, where they are decoded without a copy."""
    content = response(parts, by_id=by_id, tagged=tagged)
    found = parsed(content, parts, by_id=by_id)
    assert [content[one.begin : one.begin + one.size] for one in found] == [records or b"" for *_, records in parts]
    assert [(one.key, one.error, one.aborted, one.replica) for one in found] == [
        (key, code, bool(aborted), replica) for key, code, aborted, replica, _ in parts
    ]


@BOTH
def test_an_error_of_the_whole_request_is_raised(*, by_id: bool) -> None:
    """Its list of partitions is empty, which would pass for nothing to read."""
    with pytest.raises(WireError, match="error 70"):
        parsed(response([], 70, by_id=by_id), [], by_id=by_id)


def test_an_id_that_was_not_asked_is_an_error() -> None:
    """Its records would come under some name."""
    content = response([(TopicPartition("t", 0), 0, None, -1, b"")], by_id=True)
    with pytest.raises(WireError, match="not asked"):
        parse_fetch(memoryview(content), ids_of([TopicPartition("other", 0)]))


@BOTH
@given(parts=PARTITIONS, data=st.data())
def test_a_damaged_response_is_an_error_or_stays_inside(parts: Parts, data: st.DataObject, *, by_id: bool) -> None:
    """A length that points outside would be read from the memory of the process."""
    content = bytearray(response(parts, by_id=by_id))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[at] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    try:
        found = parsed(bytes(content), parts, by_id=by_id)
    except WireError:
        return
    assert all(one.begin >= 0 and one.size >= 0 and one.begin + one.size <= len(content) for one in found)


def test_the_request_for_versions_is_that_of_another_client() -> None:
    """Each broker since 0.10 answers it."""
    assert versions_request(7, "me") == encoded(ApiVersionsRequest(), 0)


@pytest.mark.parametrize(
    ("first", "last", "by_id"), [(0, 11, False), (0, 12, False), (4, 13, True), (4, 17, True), (14, 20, False)]
)
def test_a_broker_reads_by_id_if_it_has_that_version(first: int, last: int, *, by_id: bool) -> None:
    """A request in a version that it lacks ends the connection."""
    version = ApiVersionsResponse.ApiVersion
    apis = [version(api_key=3, min_version=0, max_version=20), version(api_key=1, min_version=first, max_version=last)]
    content = bytes(ApiVersionsResponse(error_code=0, api_keys=apis).encode(version=0))
    assert parse_versions(memoryview(content)) is by_id
    with pytest.raises(WireError):
        parse_versions(memoryview(content)[:-1])
    with pytest.raises(WireError, match="error 35"):
        parse_versions(memoryview(bytes(ApiVersionsResponse(error_code=35, api_keys=[]).encode(version=0))))


def test_only_ids_of_sixteen_bytes_are_ids() -> None:
    """A plan has no id of a topic whose broker has none, and then names are sent."""
    identity = uuid.uuid4().bytes
    text = b64encode(identity).decode().rstrip("=")
    found = ids_in_bytes({"a": text, "none": "", "short": text[:-4], "other": "not/base64?", "odd": text[:-1]})
    assert found == {"a": identity}
