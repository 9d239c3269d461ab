"""A wrong argument of the producer names the right one."""

from typing import Any

import pytest

from producer import AZAwareProducer, PolicyError, SkewGuard
from producer.traffic_counts import Traffic

LEAST = {"bootstrap.servers": "localhost:1", "client.rack": "az-a"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": "global"}, "did you mean keys?"),
        ({"fall_back": ["az-b"]}, "did you mean fallback?"),
        ({"rack": "az-a"}, "did you mean 'client.rack' of the configuration?"),
        ({"client_rack": "az-a"}, "did you mean 'client.rack' of the configuration?"),
        ({"keys": "local-hrw", "choose": "random"}, "choose replaces keys, give one of them"),
        ({"keys": {"logs": "lokal"}}, "pattern 'logs': keys='lokal' is no key mode"),
    ],
)
def test_a_wrong_argument_names_the_right_one(given: dict[str, Any], said: str) -> None:
    """The client reports an unknown property, which hides that an argument was meant."""
    with pytest.raises(PolicyError) as refused:
        AZAwareProducer(LEAST, **given)
    assert said in str(refused.value)


def test_a_property_that_looks_like_an_argument_stays_a_property() -> None:
    """`acks` is one letter from `racks`, and the bare client takes it by keyword."""
    properties: dict[str, Any] = {"acks": "all", "retries": 3, "partitioner": "murmur2_random"}
    AZAwareProducer(LEAST, **properties).close()


@pytest.mark.parametrize("name", ["cost", "wire_cost", "replication_cost"])
def test_a_price_that_is_no_number_is_refused_by_name(name: str) -> None:
    """A price from the environment is text; the comparison's own error does not name it."""
    with pytest.raises(PolicyError, match=r"price_per_gb='0\.01', need a number, not str"):
        getattr(Traffic(rack="az-a"), name)("0.01")


def test_the_bound_of_a_guard_says_what_it_is() -> None:
    """The number is a ratio, and 1 would be perfect balance."""
    with pytest.raises(PolicyError, match=r"bound=0\.5, need a number above 1: bytes of the largest partition"):
        SkewGuard(bound=0.5)
