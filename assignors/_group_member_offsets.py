# ruff: noqa: SLF001 - kafka-python answers one partition a call in public; many at once only inside
"""Offsets of logs and of the group: one request a broker, whatever the number of partitions."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka import TopicPartition as KafkaPartition
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RetriableError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from assignors._errors import FencedError, MembershipError, NotOwnedError
from assignors._group_member_ownership import OwnershipCell
from assignors._model import TopicPartition

_LATEST, _EARLIEST = -1, -2
_BACKOFF_S = 0.05


class Offsets:
    """Questions and commits over a consumer's connections.

    Contract:
    * Any thread may call; a call waits for brokers, `timeout_s` at most.
    * Answers leave out what cannot be answered in that time: a leader is being elected, a topic was just deleted.
    * A commit is checked against the ownership and sent with the generation in one step of the event loop: between
      the two no rebalance can come.
    """

    def __init__(
        self,
        consumer: Any,  # noqa: ANN401 - kafka-python is untyped
        cell: OwnershipCell,
        fail: Callable[[Exception], None],
    ) -> None:
        self._net = consumer._net
        self._manager = consumer._manager
        self._fetcher = consumer._fetcher
        self._coordinator = consumer._coordinator
        self._cell = cell
        self._fail = fail

    def committed(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """Offsets that the group has committed; partitions without one are left out.

        Raises:
            MembershipError: the coordinator did not answer in time, or refused.
        """
        asked = [KafkaPartition(*key) for key in partitions]
        try:
            found = self._coordinator.fetch_committed_offsets(asked, timeout_ms=timeout_s * 1000)
        except KafkaError as error:
            raise MembershipError(f"the offsets of {len(asked)} partitions could not be read: {error!r}") from error
        return {(one.topic, one.partition): at.offset for one, at in found.items()}

    def ends(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """The exclusive end of each log, as the isolation level sees it."""
        return self._at(dict.fromkeys(partitions, _LATEST), timeout_s)

    def beginnings(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """The first offset of each log."""
        return self._at(dict.fromkeys(partitions, _EARLIEST), timeout_s)

    def at_times(self, times_ms: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, int]:
        """The first offset at or after a time; partitions without a record so late are left out."""
        return self._at(times_ms, timeout_s)

    def commit(self, offsets: Mapping[TopicPartition, int], timeout_s: float) -> None:
        """Commit, fenced by generation and member id.

        Raises:
            NotOwnedError: a partition is not owned; nothing was committed.
            FencedError: the group went on without this member.
            MembershipError: the coordinator did not answer in time, or refused.
        """
        if not offsets:
            return
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

    async def _commit_async(self, offsets: dict[TopicPartition, int], until: float) -> None:
        wanted = {KafkaPartition(*key): OffsetAndMetadata(at, "", -1) for key, at in offsets.items()}
        while True:
            left_ms = max(1.0, (until - time.monotonic()) * 1000)
            try:
                if not await self._coordinator.ensure_coordinator_ready_async(timeout_ms=left_ms):
                    raise KafkaTimeoutError("the coordinator is not known")
                sent = self._manager.call_soon(self._check_and_send, offsets, wanted)
                await self._manager.wait_for(sent, left_ms)
            except UnknownTopicOrPartitionError:
                raise
            except (RetriableError, RebalanceInProgressError, CommitFailedError) as error:
                if not _passes(error) or time.monotonic() >= until:
                    raise
                await self._net.sleep(_BACKOFF_S)
            else:
                return

    async def _check_and_send(self, offsets: dict[TopicPartition, int], wanted: dict[Any, Any]) -> None:
        foreign = offsets.keys() - self._cell.value.partitions
        if foreign:
            topic, partition = min(foreign)
            raise NotOwnedError(
                f"{topic!r} partition {partition} (and {len(foreign) - 1} more) are not owned by this member: "
                "nothing was committed; commit in on_revoked, before it returns"
            )
        await self._coordinator._send_offset_commit_request(wanted)

    def _at(self, times: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, int]:
        asked = {KafkaPartition(*key): at for key, at in times.items()}
        found: dict[TopicPartition, int] = self._net.run(self._at_async, asked, time.monotonic() + timeout_s)
        return found

    async def _at_async(self, missing: dict[Any, int], until: float) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        while missing:
            by_leader = self._fetcher._group_list_offset_requests(missing)
            sent = [
                self._manager.call_soon(self._fetcher._send_list_offsets_request, *one) for one in by_leader.items()
            ]
            answered: set[Any] = set()
            for future, asked in zip(sent, by_leader.values(), strict=True):
                try:
                    offsets, again = await self._manager.wait_for(future, max(1.0, (until - time.monotonic()) * 1000))
                except KafkaError:
                    continue
                found.update({(one.topic, one.partition): at.offset for one, at in offsets.items()})
                answered |= asked.keys() - again
            missing = {one: at for one, at in missing.items() if one not in answered}
            if missing and time.monotonic() >= until:
                break
            if missing:
                self._manager.cluster.request_update()
                await self._net.sleep(_BACKOFF_S)
        return found


def _passes(error: KafkaError) -> bool:
    """Whether a refused commit may be accepted in a moment: a rebalance is under way, and the partitions are kept."""
    if isinstance(error, CommitFailedError):
        return bool(error.args) and isinstance(error.args[0], RebalanceInProgressError)
    return True
