"""The parts of a takeover."""

from collections.abc import Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from spark_sink.demo.takeover_parts import SessionWatch, takeover_parts
from spark_sink.demo.timeline import Ownership
from spark_sink.ranges.batch_offset import TopicPartition

OWNED = frozenset({TopicPartition("t", 0)})
OTHER = frozenset({TopicPartition("t", 1)})


class Admin:
    """Answers with the members of a script, or with an error for None."""

    def __init__(self, answers: Sequence[str | None]) -> None:
        self._answers = list(answers)

    def describe_consumer_groups(self, group_ids: list[str], **_: object) -> dict[str, "Future[Any]"]:
        """The next answer."""
        found: Future[Any] = Future()
        members = self._answers.pop(0)
        if members is None:
            found.set_exception(KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT)))
        else:
            found.set_result(SimpleNamespace(members=[SimpleNamespace(member_id=one) for one in members]))
        return {group_ids[0]: found}


def test_a_session_has_ended_when_a_member_is_gone() -> None:
    """A new member that joins meanwhile, and a broker that does not answer, are no end."""
    watch = SessionWatch(Admin(["ab", "ab", None, "abc", "bc", "bc"]), "g", clock=iter([7.0, 8.0]).__next__)
    watch.before_the_kill()
    ends = []
    for _ in range(5):
        watch.look()
        ends.append(watch.ended)
    assert ends == [None, None, None, 7.0, 7.0]


def owns(time: float, partitions: frozenset[TopicPartition]) -> Ownership:
    """A report of an agent."""
    return Ownership(time=time, agent="b", generation=1, partitions=partitions)


def test_the_parts_add_up_to_the_takeover() -> None:
    """They are in their order even if a look comes late."""
    ownership = [owns(1, OWNED), owns(9, OTHER), owns(17.5, OWNED | OTHER), owns(30, OTHER)]
    found = takeover_parts(ownership, OWNED, killed=10, session_end=16, commit=19)
    assert found == {"session": 6, "rebalance": 1.5, "first_commit": 1.5}
    late = takeover_parts(ownership, OWNED, killed=10, session_end=20, commit=19)
    assert late is not None
    assert sum(late.values()) == pytest.approx(9)


@pytest.mark.parametrize(("session_end", "gained"), [(None, OWNED), (12.0, OTHER)])
def test_a_part_that_was_not_seen_leaves_out_all(session_end: float | None, gained: frozenset[TopicPartition]) -> None:
    """A wrong figure is worse than none."""
    assert takeover_parts([owns(15, gained)], OWNED, killed=10, session_end=session_end, commit=19) is None
