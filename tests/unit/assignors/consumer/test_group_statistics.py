"""A report of `stats_cb` states the group's offsets and lags, as the bare consumer's does."""

import json
import time
from typing import Any

import pytest

from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, at, check, read
from tests.waiting import wait_until

pytestmark = pytest.mark.long

REPORTS = {"statistics.interval.ms": 100}
OF_A_PARTITION = (
    "app_offset",
    "stored_offset",
    "committed_offset",
    "consumer_lag",
    "consumer_lag_stored",
    "stored_leader_epoch",
)
OF_THE_GROUP = ("state", "join_state", "rebalance_cnt", "assignment_size")
NONE = -1001


def seen(text: str) -> tuple[list[list[Any]], list[Any]]:
    """What a report says of the three partitions, and of the group."""
    report = json.loads(text)
    partitions = report["topics"].get("t", {}).get("partitions", {})
    return (
        [
            [partitions[str(number)][name] for name in OF_A_PARTITION]
            for number in range(3)
            if str(number) in partitions
        ],
        [report["cgrp"][name] for name in OF_THE_GROUP],
    )


def last_report(one: Any, reports: list[str], committed: list[int]) -> Any:
    """The first report from now on that has these committed offsets, while the program polls."""
    now = time.monotonic() * 1e6  # a report from before, when records were still to be read, may wait in the queue

    def known() -> bool:
        assert one.poll(0.05) is None
        return (
            bool(reports)
            and json.loads(reports[-1])["ts"] > now
            and [of[2] for of in seen(reports[-1])[0]] == committed
        )

    wait_until(known, 20)
    return seen(reports[-1])


def of_a_member(bench: Bench) -> Any:
    """After all records, and commits of some."""
    reports: list[str] = []
    one, _ = bench.joined(**SHORT, **REPORTS, stats_cb=reports.append)
    one.commit(offsets=[at(0, 20), at(1, RECORDS)], asynchronous=False)
    return last_report(one, reports, [20, RECORDS, NONE])


def of_a_later_member(bench: Bench) -> Any:
    """The offsets that were committed before it are known, too."""
    group: dict[str, Any] = {**SHORT, "group.id": "later"}
    first, _ = bench.joined(**group)
    first.commit(offsets=[at(number, 20) for number in range(3)], asynchronous=False)
    first.close()
    reports: list[str] = []
    one, _ = bench.joined(3 * (RECORDS - 20), **group, **REPORTS, stats_cb=reports.append)
    return last_report(one, reports, [20, 20, 20])


def of_a_storing_program(bench: Bench) -> Any:
    """Only what the program has stored counts as stored."""
    reports: list[str] = []
    one, _ = bench.joined(**SHORT, **REPORTS, stats_cb=reports.append, **{"enable.auto.offset.store": False})
    one.store_offsets(offsets=[at(0, 7)])
    one.commit(asynchronous=False)
    return last_report(one, reports, [7, NONE, NONE])


def without_a_group(bench: Bench) -> Any:
    """Commits of partitions that were assigned by hand."""
    reports: list[str] = []
    one = bench.make(**REPORTS, stats_cb=reports.append)
    one.assign([at(number, 10) for number in range(3)])
    read(one, 3 * (RECORDS - 10))
    one.commit(offsets=[at(number, 30) for number in range(3)], asynchronous=False)
    return last_report(one, reports, [30, 30, 30])[0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("body", [of_a_member, of_a_later_member, of_a_storing_program, without_a_group])
def test_reports_of_both_consumers_say_the_same(cluster: MockCluster, body: Any, protocol: str) -> None:
    """Programs watch the lag there. The client that fetches is in no group and commits nothing: each lag was -1."""
    check(body, cluster, protocol)
