"""The assignors of a `GroupConsumer`: those that the program gives or the default, with the consumer's rack."""

from collections.abc import Callable, Sequence
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.consumer.consumer_errors import ArgumentError
from assignors.errors import MembershipError
from assignors.protocol.kafka_python_assignors import HRWAssignor, ShuffledRoundRobinAssignor


def assignors_with_rack(
    assignors: Sequence[AbstractPartitionAssignor | Callable[[], Any]] | None,
    rack: Any,  # noqa: ANN401 -- a setting
) -> list[AbstractPartitionAssignor]:
    """Return the assignors of a consumer.

    Args:
        assignors: that the program gives, also as classes.
        rack: client.rack; each of our assignors plans with it that was made without a rack.

    Raises:
        ArgumentError: they are not a list of assignors, or the rack is too long.
    """
    if assignors is not None and (isinstance(assignors, str) or not isinstance(assignors, Sequence)):
        raise ArgumentError(f"assignors={assignors!r}: need a list, as [HRWAssignor()]")
    if assignors is not None and not assignors:
        raise ArgumentError(
            "assignors=[] is empty: need one or more, or leave it out for [HRWAssignor(cooperative=True)]"
        )
    given = list(assignors or [HRWAssignor(cooperative=True)])
    for one in given:
        if not (isinstance(one, AbstractPartitionAssignor) or callable(one)):
            raise ArgumentError(f"assignors=[{one!r}]: need assignors, as [HRWAssignor()]")
    # kafka-python also accepts classes, but the assignors that it creates from them have no rack.
    found = [one if isinstance(one, AbstractPartitionAssignor) else _made(one) for one in given]
    if rack:
        for one in found:
            if isinstance(one, HRWAssignor | ShuffledRoundRobinAssignor):
                _use_rack(one, str(rack))
    return found


def _made(kind: Callable[[], Any]) -> AbstractPartitionAssignor:
    try:
        found = kind()
    except TypeError as error:
        raise ArgumentError(
            f"assignors=[{kind!r}]: the call without arguments failed ({error}); give an instance"
        ) from error
    if not isinstance(found, AbstractPartitionAssignor):
        raise ArgumentError(f"assignors=[{kind!r}]: it returns {found!r}, which is not an assignor")
    return found


def _use_rack(assignor: HRWAssignor | ShuffledRoundRobinAssignor, rack: str) -> None:
    try:
        assignor.use_rack(rack)
    except MembershipError as error:
        raise ArgumentError(str(error)) from error
