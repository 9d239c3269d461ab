"""The group's part of librdkafka's statistics, which the client that fetches does not know."""

import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.consumer.commit_queue import CommitQueue
from assignors.consumer.consumed_offsets import Progress
from assignors.consumer.fetching import Fetching
from assignors.consumer.rebalance_handling import Membership
from assignors.planner.topics_and_members import TopicPartition

_NO_LAG: Final = -1
_UNCOMMITTED: Final = "read_uncommitted"


class GroupStatistics:
    """Completes reports of `stats_cb`: programs watch the lag there.

    The client that fetches is in no group, stores no offsets and commits none, so each lag would be -1. It delivers
    records before the program needs them, so its position would be too far.

    Contract: used by the thread that polls. Without a group, commits are the client's own and stay as it reports them.

    Args:
        fetching: knows the positions.
        progress: the offsets that are stored.
        commits: knows the committed offsets.
        membership: of the group.
        isolation: `isolation.level`: the lag is counted from the last stable offset, or from the end of the log.
    """

    def __init__(
        self, fetching: Fetching, progress: Progress, commits: CommitQueue, membership: Membership, isolation: str
    ) -> None:
        self._fetching = fetching
        self._progress = progress
        self._commits = commits
        self._membership = membership
        self._end = "hi_offset" if isolation.lower() == _UNCOMMITTED else "ls_offset"

    def complete(self, report: Mapping[str, Any]) -> None:
        """Change a report in place."""
        positions, stored = self._fetching.positions(), self._progress.done()
        in_group = not self._membership.without_group
        committed = self._commits.accepted() if in_group else {}
        for key in self._fetching.partitions:
            if (one := _partition(report, key)) is not None:
                one["app_offset"] = positions.get(key, OFFSET_INVALID)
                self._set(one, "stored", stored.get(key), "consumer_lag_stored")
                if in_group:
                    self._set(one, "committed", committed.get(key), "consumer_lag")
        if in_group and "cgrp" in report:
            report["cgrp"].update(self._group())

    def _set(self, one: dict[str, Any], kind: str, offset: Offset | None, lag: str) -> None:
        at = OFFSET_INVALID if offset is None else offset
        known = OffsetWithMetadata.of(at)
        one[f"{kind}_offset"] = known.offset
        one[f"{kind}_leader_epoch"] = known.leader_epoch
        # The report may be older than the offset, and its end of the log before that.
        one[lag] = max(0, one[self._end] - known.offset) if min(known.offset, one[self._end]) >= 0 else _NO_LAG

    def _group(self) -> dict[str, Any]:
        handled = self._membership.handled
        return {
            "state": "up",
            "join_state": "steady" if self._membership.owned().member_id else "init",
            "rebalance_age": int(1000 * (time.monotonic() - handled.at)) if handled.number else 0,
            "rebalance_cnt": handled.number,
            "assignment_size": len(self._membership.owned().partitions),
        }


def _partition(report: Mapping[str, Any], key: TopicPartition) -> dict[str, Any] | None:
    found: dict[str, Any] | None = report["topics"].get(key[0], {}).get("partitions", {}).get(str(key[1]))
    return found
