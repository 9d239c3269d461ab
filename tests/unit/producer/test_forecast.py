"""The forecast, which sends no record."""

from producer.decisions.leader_locality import Reason
from producer.forecast import forecast, render

RACKS: dict[int, str | None] = {1: "az-a", 2: "az-b", 3: "az-c"}
LEADERS = [1, 2, 3, 1, 2, 3]
REPLICAS = [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]]


def test_a_zones_failure_hands_its_leaders_to_the_next_replica() -> None:
    """Without the producer's zone the records go to the new leaders; another zone's failure adds local leaders."""
    seen = forecast("flights", LEADERS, REPLICAS, RACKS, "az-a")
    assert seen.now.locality.candidates == (0, 3)
    assert seen.now.zones == {"az-a": 1.0}
    assert seen.now.keyed_zones == {"az-a": 1 / 3, "az-b": 1 / 3, "az-c": 1 / 3}
    assert seen.failures["az-a"].locality.reason is Reason.NO_LOCAL_LEADER
    assert seen.failures["az-a"].zones == {"az-b": 0.5, "az-c": 0.5}
    assert seen.failures["az-b"].locality.candidates == (0, 3, 4)
    assert forecast("flights", LEADERS, REPLICAS, RACKS, "az-a", ["az-c"]).failures["az-a"].zones == {"az-c": 1.0}


def test_without_replicas_a_failure_leaves_partitions_without_a_leader() -> None:
    """The text reports it, next to the shares."""
    seen = forecast("flights", LEADERS, [[leader] for leader in LEADERS], RACKS, "az-a")
    assert seen.failures["az-b"].leaderless == (1, 4)
    text = render(seen)
    for part in ("producer in az-a, topic flights, 6 partitions", "0, 3 (local)", "50.00%", "no leader for 1, 4"):
        assert part in text


def test_a_large_topic_is_shown_short() -> None:
    """Ten thousand partitions are not a table."""
    text = render(forecast("big", [1, 2, 3] * 4_000, [[1], [2], [3]] * 4_000, RACKS, "az-b"))
    assert "(4000 in all)" in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_a_zone_that_no_broker_has_is_told_with_the_racks_there_are() -> None:
    """A typing error, or a zone's id for its name: the way out is one of these."""
    assert "racks seen      az-a, az-b, az-c" in render(forecast("flights", LEADERS, REPLICAS, RACKS, "use1-az1"))
    assert "racks seen" not in render(forecast("flights", LEADERS, REPLICAS, RACKS, "az-a"))


def test_the_text_fits_a_terminal() -> None:
    """80 columns, with the longest reason and partitions without a leader."""
    text = render(forecast("flights", LEADERS, [[leader] for leader in LEADERS], RACKS, "az-x"))
    assert max(len(line) for line in text.splitlines()) <= 80
