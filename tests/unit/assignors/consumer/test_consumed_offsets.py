"""The progress of a consumer, and the offsets that it commits."""

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition

from assignors import MembershipError, NotOwnedError
from producer.testing import MockCluster
from tests.records import read
from tests.unit.assignors.conftest import RECORDS, consumer


def test_only_what_was_stored_is_committed_where_the_program_stores(mock: MockCluster) -> None:
    """With enable.auto.offset.store=False, a commit at a revocation must not include records that are not stored."""
    with consumer(mock, **{"enable.auto.commit": True, "enable.auto.offset.store": False}) as one:
        one.subscribe(["t"])
        found = [m for m in read(one, 3 * RECORDS) if m.partition() == 1]
        with pytest.raises(NotOwnedError, match="'u' partition 0"):
            one.store_offsets(offsets=[TopicPartition("u", 0, 1)])
        with pytest.raises(MembershipError, match="give"):
            one.store_offsets()
        one.store_offsets(found[9])
        one.store_offsets(offsets=[TopicPartition("t", 2, 7)])
    with consumer(mock) as one:
        one.subscribe(["t"])
        keys = [TopicPartition("t", n) for n in range(3)]
        assert [p.offset for p in one.committed(keys)] == [OFFSET_INVALID, 10, 7]
        with pytest.raises(MembershipError, match=r"enable\.auto\.offset\.store=False"):
            one.store_offsets(found[0])
