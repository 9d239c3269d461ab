"""Local bytes, cross-zone bytes, and their cost."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from producer import Count, PolicyError, Reason, Traffic, matrix
from producer.prometheus import TrafficCollector
from producer.traffic_cost import Flow, summarise

ZONES = [None, "az-a", "az-b", "az-c"]
FLOWS = st.lists(
    st.builds(
        Flow,
        st.sampled_from(["t1", "t2"]),
        st.sampled_from(ZONES),
        st.sampled_from(list(Reason)),
        st.builds(Count, st.integers(0, 1_000), st.integers(0, 1_000_000)),
    )
)


@given(FLOWS, st.sampled_from(ZONES))
def test_every_view_adds_up_to_the_same_bytes(flows: list[Flow], rack: str | None) -> None:
    """Sides, zones, topics and reasons are four ways to cut one cake."""
    traffic = summarise(flows, rack)
    total = sum(flow.amount.bytes for flow in flows)
    assert traffic.local.bytes + traffic.cross.bytes + traffic.unknown.bytes == total
    for view in (traffic.zones, traffic.topics, traffic.reasons, traffic.matrix):
        assert sum(count.bytes for count in view.values()) == total
    assert 0 <= traffic.cross_zone_share <= 1
    if rack is None:
        assert traffic.unknown.bytes == total


def test_money_is_per_gigabyte_that_left() -> None:
    """10^9 bytes, one direction; local and unknown bytes are free."""
    traffic = Traffic(
        rack="az-a", local=Count(5, 10**10), cross=Count(1, 3 * 10**9), unknown=Count(1, 10**9), seconds=1_800
    )
    assert traffic.cost() == pytest.approx(0.03)
    assert traffic.cost(price_per_gb=0.02) == pytest.approx(0.06)
    assert traffic.cost_per_hour() == pytest.approx(0.06)
    assert traffic.cross_zone_share == pytest.approx(3 / 13)
    assert Traffic().cost_per_hour() == Traffic().cross_zone_share == 0
    for price in (-1, float("nan")):
        with pytest.raises(PolicyError, match="price_per_gb"):
            traffic.cost(price)


def test_money_on_the_wire_is_of_the_bytes_that_were_sent_to_other_zones() -> None:
    """Records before compression say little of a bill; where the wire is not counted, nothing is invented."""
    wire = {"az-a": 10**9, "az-b": 2 * 10**9, "az-c": 10**9, "unknown": 10**9}
    assert Traffic(rack="az-a", wire_bytes=wire).wire_cost(0.02) == pytest.approx(0.06)
    assert Traffic(rack="az-a", wire_bytes={"az-a": 1}).wire_cost() == 0
    assert Traffic(rack="az-a", cross=Count(1, 10**9)).wire_cost() is None
    assert Traffic(wire_bytes=wire).wire_cost() is None
    with pytest.raises(PolicyError, match="price_per_gb"):
        Traffic(rack="az-a", wire_bytes=wire).wire_cost(-1)


def test_several_producers_make_one_matrix() -> None:
    """From zone, to zone: the data for the picture of the traffic."""
    a = summarise(
        [Flow("t", "az-a", Reason.LOCAL, Count(1, 10)), Flow("t", "az-b", Reason.LOCAL, Count(2, 20))], "az-a"
    )
    b = summarise([Flow("t", "az-b", Reason.LOCAL, Count(3, 30)), Flow("t", None, Reason.LOCAL, Count(1, 1))], "az-b")
    assert matrix([a, b, b]) == {
        ("az-a", "az-a"): (1, 10),
        ("az-a", "az-b"): (2, 20),
        ("az-b", "az-b"): (6, 60),
        ("az-b", "unknown"): (2, 2),
    }


def test_prometheus_shows_the_same_numbers() -> None:
    """A scrape asks the producers; registering the collector does not."""

    class Producer:
        """Has traffic, once asked."""

        asked = 0
        estimated = False

        def traffic(self) -> Traffic:
            """Count the questions."""
            self.asked += 1
            flows = [Flow("t", "az-a", Reason.LOCAL, Count(1, 10)), Flow("t", "az-b", Reason.GLOBAL_KEY, Count(2, 30))]
            wire = {("t", "az-a"): Count(1, 7), ("t", "az-b"): Count(2, 15)}
            counted = summarise(flows, "az-a", wire_bytes={"az-a": 99, "az-b": 20})
            return replace(counted, wire_topics=wire, wire_estimated=self.estimated)

    producer, registry = Producer(), CollectorRegistry()
    registry.register(TrafficCollector({"ingest": producer}, price_per_gb=0.01))
    assert producer.asked == 0
    text = generate_latest(registry).decode()
    for line in (
        'azimuth_producer_bytes_total{producer="ingest",rack="az-a",topic="t",zone="az-b"} 30.0',
        'azimuth_producer_records_total{producer="ingest",rack="az-a",topic="t",zone="az-a"} 1.0',
        'azimuth_producer_reason_records_total{producer="ingest",rack="az-a",reason="global key"} 2.0',
        'azimuth_producer_wire_bytes_total{producer="ingest",rack="az-a",zone="az-a"} 99.0',
        'azimuth_producer_topic_wire_bytes_total{producer="ingest",rack="az-a",topic="t",zone="az-b"} 15.0',
        'azimuth_producer_cross_zone_share{producer="ingest",rack="az-a"} 0.75',
        'azimuth_producer_cost_total{producer="ingest",rack="az-a"} 3e-10',
        'azimuth_producer_wire_cost_total{producer="ingest",rack="az-a"} 2e-10',
    ):
        assert line in text
    assert json.loads(json.dumps(producer.traffic().as_dict()))["cross"] == {"records": 2, "bytes": 30}
    producer.estimated = True
    assert "azimuth_producer_topic_wire_bytes_total{" not in generate_latest(registry).decode()
