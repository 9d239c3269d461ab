"""The forecast, which sends no record."""

import pytest

from producer.decisions.candidate_partitions_in_zone import Reason
from producer.forecast import forecast, render, render_all

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


def test_without_racks_the_text_says_what_it_cannot_know() -> None:
    """It said that brokers send no copies to other zones, and ended with the head of an empty table."""
    seen = forecast("flights", LEADERS, REPLICAS, dict.fromkeys(RACKS), "az-a")
    for text in (render(seen), render_all([seen])):
        assert "0.00" not in text
        assert "set broker.rack" in text.splitlines()[-1]
        assert max(len(line) for line in text.splitlines()) <= 90
    assert "no broker has a rack" in render(seen)
    assert "if this zone fails" not in render(seen)


def test_the_text_fits_a_terminal() -> None:
    """80 columns, with the longest reason and partitions without a leader."""
    text = render(forecast("flights", LEADERS, [[leader] for leader in LEADERS], RACKS, "az-x"))
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize(
    ("replicas", "local", "keyed"),
    [
        (REPLICAS, 1.0, 1.0),
        ([[1, 2, 3]] * 6, 2.0, 2.0),
        ([[1], [2, 3], [3, 2], [1], [2, 3], [3, 2]], 0.0, 2 / 3),
        ([[1, 9]] + [[leader] for leader in LEADERS[1:]], 0.0, 0.0),
    ],
    ids=["two copies", "three copies", "none of local partitions", "a replica of unknown zone"],
)
def test_replication_counts_the_copies_in_other_zones_than_the_leaders(
    replicas: list[list[int]], local: float, keyed: float
) -> None:
    """It is part of the bill, and no choice of the producer avoids it: the forecast must not hide it."""
    seen = forecast("flights", LEADERS, replicas, RACKS, "az-a")
    assert seen.now.replication == local
    assert seen.now.keyed_replication == pytest.approx(keyed)
    assert "no client can avoid them" in render(seen)


def test_replicas_out_of_sync_are_shown_and_take_over_nothing() -> None:
    """After a zone's failure only replicas in sync may lead."""
    synced = [*REPLICAS[:5], [3]]
    seen = forecast("flights", LEADERS, REPLICAS, RACKS, "az-a", (), synced)
    assert seen.lagging == (5,)
    assert "not in sync     5" in render(seen)
    assert seen.failures["az-c"].leaderless == (5,)
    assert seen.failures["az-c"].locality.candidates == (0, 2, 3)


def test_the_table_of_a_pattern_has_each_topic_with_its_skew_and_its_shares() -> None:
    """One row a topic, within a terminal."""
    topics = {"flights": [1, 2, 3, 1, 2, 3], "away": [2, 3], "home": [1, 1]}
    rows = [forecast(name, led, [[one, 9] for one in led], RACKS, "az-a") for name, led in topics.items()]
    text = render_all(rows)
    assert "producer in az-a, 3 topics, 10 partitions" in text
    shown = {line.split()[0]: line.split()[1:] for line in text.splitlines()[4:7]}
    assert shown == {
        "flights": ["6", "2", "3.0", "0%", "67%", "0.00", "0"],
        "away": ["2", "2", "1.0", "100%", "100%", "0.00", "0"],
        "home": ["2", "2", "1.0", "0%", "0%", "0.00", "0"],
    }
    assert max(len(line) for line in text.splitlines()) <= 90
    assert "zones*" in text.splitlines()[3]
    assert text.splitlines()[-1].startswith("* replication")
    assert "no client can avoid it" in text.splitlines()[-1]
