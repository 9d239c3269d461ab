"""The data set as records."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.demo.flights import load_flights
from spark_sink.demo.producing import sample_routes


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    """The whole data set, read once."""
    return load_flights()


def test_every_flight_is_a_record_of_its_route(flights: pa.Table) -> None:
    """336,776 flights on 224 routes; a flight without a tail number has no key."""
    assert flights.num_rows == 336_776
    assert len(flights.column("topic").unique()) == 224
    assert flights.column("key").null_count == 2_512


def test_values_are_json_with_types_and_unique(flights: pa.Table) -> None:
    """The verification compares by value, so no two may be equal."""
    first = json.loads(flights.column("value")[0].as_py())
    assert first["n"] == 0
    assert first["tailnum"] == "N14228"
    assert first["dep_delay"] == 2
    assert len(flights.column("value").unique()) == flights.num_rows


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.floats(0.05, 0.9))
def test_a_sample_of_routes_holds_at_least_its_share(volumes: list[int], share: float) -> None:
    """The report says "at least": the largest of every n routes is taken."""
    topics = [f"t{i}" for i, volume in enumerate(volumes) for _ in range(volume)]
    assert sample_routes(pa.table({"topic": topics}), share).num_rows >= share * len(topics)
