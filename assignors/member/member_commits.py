# ruff: noqa: SLF001 - kafka-python commits with the generation of its own choice in public
"""Commits of a member, fenced by its generation, and the requests that any consumer may send."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from kafka import TopicPartition as KafkaPartition
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from assignors.clients.log_offsets import LogOffsets, Offset, OffsetWithMetadata
from assignors.errors import FencedError, MembershipError
from assignors.member.ownership import OwnershipCell
from assignors.planner.topics_and_members import TopicPartition

_BACKOFF_S = 0.05
_ANSWER_MS = 1000.0
_LONGEST_METADATA = 2**15 - 1  # bytes: the length has two of them in most versions of the request
_UNKNOWN_TOPIC_RETRIES = 3  # a broker may not know a new topic yet; one that was deleted stays unknown


class FencedCommits(LogOffsets):
    """Commits and requests for offsets over a member's connections.

    Contract: one step of the event loop checks a commit against the ownership and sends it with the generation, so no
    rebalance can come between the two.
    """

    def __init__(
        self,
        consumer: Any,  # noqa: ANN401 - kafka-python is untyped
        cell: OwnershipCell,
        fail: Callable[[Exception], None],
    ) -> None:
        super().__init__(consumer)
        self._cell = cell
        self._fail = fail

    def commit(self, offsets: Mapping[TopicPartition, Offset], timeout_s: float) -> None:
        """Commit, fenced by generation and member id.

        Raises:
            NotOwnedError: a partition is not owned; nothing was committed.
            FencedError: the group continued without this member.
            MembershipError: the coordinator did not answer in time, or refused.
        """
        if not offsets:
            return
        _check_metadata(offsets)
        try:
            self._net.run(self._commit_async, dict(offsets), time.monotonic() + timeout_s)
        except FencedInstanceIdError as error:
            self._fail(error)
            raise FencedError(
                f"group.instance.id {self._coordinator.group_instance_id!r} is used by a newer member: give each "
                "running member an id of its own"
            ) from error
        except CommitFailedError as error:
            raise FencedError(
                f"group {self._coordinator.group_id!r} went on without this member: {len(offsets)} offsets were not "
                "committed, their partitions have another owner"
            ) from error
        except KafkaError as error:
            raise MembershipError(f"{len(offsets)} offsets were not committed: {error!r}") from error

    async def _commit_async(self, offsets: dict[TopicPartition, Offset], until: float) -> None:
        wanted = {KafkaPartition(*key): _with_metadata(at) for key, at in offsets.items()}
        refused: KafkaError | None = None
        unknown = 0
        while True:
            left_ms = max(1.0, (until - time.monotonic()) * 1000)
            try:
                if not await self._coordinator.ensure_coordinator_ready_async(timeout_ms=left_ms):
                    raise KafkaTimeoutError("the coordinator is not known")
                sent = self._manager.call_soon(self._check_and_send, offsets, wanted)
                await self._manager.wait_for(sent, left_ms)
            except UnknownTopicOrPartitionError:
                if (unknown := unknown + 1) > _UNKNOWN_TOPIC_RETRIES:
                    raise
                await self._net.sleep(_BACKOFF_S)
            except (RetriableError, RebalanceInProgressError, CommitFailedError) as error:
                if not _passes(error) or time.monotonic() >= until:
                    raise (refused if refused and _too_short_for_an_answer(error, left_ms) else error) from None
                # A rebalance that lasts too long is a timeout: the group did not go on without this member.
                refused = None if isinstance(error, CommitFailedError) else error
                await self._net.sleep(_BACKOFF_S)
            else:
                return

    async def _check_and_send(self, offsets: dict[TopicPartition, Offset], wanted: dict[Any, Any]) -> None:
        self._cell.value.check_owns(offsets.keys())
        await self._coordinator._send_offset_commit_request(wanted)


def _check_metadata(offsets: Mapping[TopicPartition, Offset]) -> None:
    """Refuse what kafka-python cannot write, with the error that brokers have for much shorter texts, too."""
    for (topic, partition), at in offsets.items():
        length = len(OffsetWithMetadata.of(at).metadata.encode())
        if length > _LONGEST_METADATA:
            raise MembershipError(
                f"{topic!r} partition {partition}: its offset was not committed, because its metadata has {length} "
                f"bytes, need {_LONGEST_METADATA} or less (brokers accept 4096 by default)"
            ) from OffsetMetadataTooLargeError()


def _with_metadata(at: Offset) -> Any:  # noqa: ANN401 -- kafka-python is untyped
    return OffsetAndMetadata(*OffsetWithMetadata.of(at))


def _passes(error: KafkaError) -> bool:
    """Return whether a retry of a refused commit may succeed: a rebalance is in progress, and the partitions stay."""
    if isinstance(error, CommitFailedError):
        return bool(error.args) and isinstance(error.args[0], RebalanceInProgressError)
    return True


def _too_short_for_an_answer(error: KafkaError, waited_ms: float) -> bool:
    """Return whether it is the timeout of a last, short request; the earlier refusal explains more."""
    return isinstance(error, KafkaTimeoutError) and waited_ms < _ANSWER_MS
