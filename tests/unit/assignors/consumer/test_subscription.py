"""Names and patterns, for the member and for errors of topics."""

import re

import pytest

from assignors.consumer.subscription import Subscription


def unmatched(one: Subscription, known: list[str]) -> list[str]:
    """The names and patterns that match none of these topics."""
    return [wanted for wanted, topics in one.matches(known).items() if not topics]


def test_plain_names_stay_names() -> None:
    """A pattern makes the client request every topic of the cluster; with names it requests only these."""
    assert Subscription.of(["b", "a", "b"]).for_member() == {"topics": ["a", "b"]}


def test_names_beside_a_pattern_join_to_one_pattern() -> None:
    """A name means itself with its dots; a pattern means the beginning of names, as librdkafka has it."""
    made = Subscription.of(["a.b", "^flights", "^x$"]).for_member()["pattern"]
    fits = re.compile(f"^(?:{made})$").match
    assert [name for name in ("a.b", "axb", "a.bc", "flights.JFK", "my.flights", "x", "xy") if fits(name)] == [
        "a.b",
        "flights.JFK",
        "x",
    ]


def test_names_that_no_topic_can_have_are_not_asked_for() -> None:
    """kafka-python refuses them all together; the program gets a message for each instead."""
    assert Subscription.of(["a", "bad topic"]).for_member() == {"topics": ["a"]}
    assert not re.search(Subscription.of([".."]).for_member()["pattern"], "anything")


def test_what_matches_no_topic_is_found() -> None:
    """Names and patterns alike."""
    one = Subscription.of(["a", "nosuch", "^b", "^zz"])
    assert unmatched(one, ["a", "bb"]) == ["nosuch", "^zz"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^a[[:digit:]]$", ["a1"]),
        ("^[[:alpha:]]+$", ["ab", "xb"]),
        ("^a[^[:alpha:]_]", ["a.b", "a1"]),
        ("^a|b", ["a.b", "a1", "ab", "xb"]),  # ^ belongs to the first alternative only
    ],
)
def test_patterns_match_as_in_librdkafka(pattern: str, expected: list[str]) -> None:
    """Its expressions are POSIX's: with Python's reading of a class a consumer subscribed to nothing."""
    names = ["a.b", "a1", "ab", "xb"]
    one = Subscription.of([pattern])
    made = one.for_member()["pattern"]
    assert [name for name in names if re.match(f"^(?:{made})$", name)] == expected
    assert [name for name in names if not unmatched(one, [name])] == expected


@pytest.mark.parametrize("wanted", [["^.*"], ["^t", "^o", "two"]])
def test_hidden_topics_count_as_absent(wanted: list[str]) -> None:
    """The fetching client does not see topics of `topic.blacklist`: assigned partitions would never be read."""
    one = Subscription.of(wanted, "^tw,one")
    made = one.for_member()["pattern"]
    assert [name for name in ("one", "one1", "two", "three") if re.match(f"^(?:{made})$", name)] == ["one1", "three"]
    assert Subscription.of(["one", "three"], "^tw,one").for_member() == {"topics": ["three"]}
    assert unmatched(Subscription.of(["one"], "one"), ["one"]) == ["one"]
