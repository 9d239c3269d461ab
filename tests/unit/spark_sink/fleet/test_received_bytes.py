"""Bytes by zone, the cost of cross-zone traffic, and quarantined records, in an agent's status."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from producer import MetadataError
from producer.traffic_cost import UNKNOWN
from spark_sink.fleet.background_values import BackgroundValue
from spark_sink.fleet.quarantine_counts import Quarantined, quarantined_rows
from spark_sink.fleet.received_bytes import BrokerZones, Racks, crossing, received_by_broker
from spark_sink.formats.quarantine_addresses import quarantine_of
from tests.waiting import wait_until


def test_bytes_add_up_by_zone_once_the_racks_are_known() -> None:
    """Until then, and where a broker has no rack, their zone is unknown; a known cluster is not asked again."""
    asked: list[int] = []

    def ask() -> Racks:
        asked.append(1)
        return {1: "az-a", 2: "az-b", 3: "az-b", 4: None}

    zones = BrokerZones({}, ask)
    sizes = {1: 10, 2: 20, 3: 5, 4: 7}
    wait_until(lambda: zones.of(sizes) == {"az-a": 10, "az-b": 25, UNKNOWN: 7})
    assert zones.of(sizes) == {"az-a": 10, "az-b": 25, UNKNOWN: 7}
    assert len(asked) == 1


def test_a_broker_that_is_also_the_coordinator_is_counted_whole() -> None:
    """The group has a separate connection to it, which librdkafka lists as an additional broker."""
    brokers = {
        "a:9092/1": {"nodeid": 1, "rxbytes": 100},
        "GroupCoordinator": {"nodeid": 1, "rxbytes": 5},
        "a:9092/bootstrap": {"nodeid": -1, "rxbytes": 7},
        "b:9092/2": {"nodeid": 2, "rxbytes": 30},
    }
    assert received_by_broker({"brokers": brokers}) == {1: 105, 2: 30}
    assert received_by_broker({}) == {}


def test_racks_that_cannot_be_had_leave_the_zone_unknown() -> None:
    """Without an answer, or without the right, the zones are unknown, and nothing fails."""
    tried = threading.Event()

    def refuse() -> Racks:
        tried.set()
        raise MetadataError("no right to ask")

    zones = BrokerZones({}, refuse)
    assert zones.of({1: 10}) == {UNKNOWN: 10}
    assert tried.wait(10)
    assert zones.of({1: 10}) == {UNKNOWN: 10}


def test_what_crosses_zones_is_billed_and_the_unknown_is_not() -> None:
    """3 GB of 4 known GB from elsewhere in half an hour, at a price of 0.02."""
    sizes = {"az-a": 10**9, "az-b": 2 * 10**9, "az-c": 10**9, UNKNOWN: 5 * 10**9}
    assert crossing(sizes, "az-a", 0.02, 1800) == pytest.approx(
        {"bytes": 3 * 10**9, "share": 0.75, "cost": 0.06, "cost_per_hour": 0.12}
    )


@pytest.mark.parametrize("sizes", [{}, {"az-a": 5}, {UNKNOWN: 5}], ids=["nothing", "home", "unknown"])
def test_what_stays_at_home_costs_nothing(sizes: dict[str, int]) -> None:
    """And the share of nothing is 0."""
    assert crossing(sizes, "az-a", 0.02, 0.0) == {"bytes": 0, "share": 0.0, "cost": 0.0, "cost_per_hour": 0.0}


def test_without_an_own_zone_nothing_is_said_of_others() -> None:
    """Nothing would be local, and the bill would be wrong."""
    assert crossing({"az-a": 5}, None, 0.02, 10.0) == {}


def test_a_value_is_found_again_only_when_it_is_old() -> None:
    """Also where finding it fails: the old one stays, and the next attempt comes later."""
    now, found = [0.0], iter([1, 2])
    value = BackgroundValue[int](lambda: next(found), 0, 60.0, lambda: now[0])
    assert value.last == 0
    wait_until(lambda: value() == 1)
    wait_until(lambda: value._next == 60.0)
    assert value() == 1
    now[0] = 60.0
    wait_until(lambda: value() == 2)


def test_records_in_quarantine_are_counted_over_all_tables(tmp_path: Path) -> None:
    """A table without a quarantine has none in it; a log that cannot be read is no end of the agent."""
    tables = [str(tmp_path / name) for name in ("one", "two", "three")]
    for table, rows in zip(tables[:2], (3, 4), strict=True):
        for _ in range(2):
            write_deltalake(quarantine_of(table), pa.table({"offset": range(rows)}), mode="append")
    assert [quarantined_rows(quarantine_of(table)) for table in tables] == [6, 8, 0]
    count = Quarantined(lambda: tables)
    assert count() is None
    wait_until(lambda: count() == 14)
    assert Quarantined(list)._add_up() is None, "an agent that starts has no tables yet"
    DeltaTable(quarantine_of(tables[0])).delete()
    assert quarantined_rows(quarantine_of(tables[0])) == 0
