"""`azimuth plan` reports invalid arguments before it connects to brokers."""

import pytest
import typer

from assignors import Member, Topic
from assignors.comparison import LiveGroup
from spark_sink.cli import plan
from spark_sink.cli._app import main
from spark_sink.cli.plan import owners, rendered


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "*=\u00b2"], "need a whole number"),
        (["--workers", "*=0"], "1 or more"),
        (["--epsilon", "-1"], "epsilon=-1.0"),
        (["--workers", "4", "--workers", "a=1"], "write '*=4'"),
        (["--topic", "flights"], "it belongs to --producer"),
        (["--owners", "--explain", "flights"], "needs --group, and no --explain"),
    ],
)
def test_wrong_settings_are_told_before_any_broker_is_asked(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The timeout of a broker takes long, and would hide the invalid argument."""

    def asked(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("assignors.comparison.read_group", asked)
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--bootstrap-servers", "127.0.0.1:1", "--group", "g", *arguments])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_topics_that_a_plan_lacks_are_counted_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A plan of the others looks complete."""
    group = LiveGroup(
        name="g",
        state="Stable",
        strategy="range",
        members=(),
        hosts={},
        topics=(Topic("a", 1),),
        sizes=None,
        not_described=("b", "c", "d", "e"),
    )
    plan._warn_of_gaps(group)
    said = capsys.readouterr()
    assert not said.out
    assert said.err == (
        "azimuth: 4 of 5 topics of group 'g' are not in the plan: there is no such topic, or this user may not "
        "describe it (b, c, d, ...): allow it DESCRIBE\n"
    )


def group_of(*members: Member, strategy: str = "hrw") -> LiveGroup:
    """A group at rest that reads one topic of three partitions."""
    return LiveGroup(
        name="g",
        state="Stable",
        strategy=strategy,
        members=members,
        hosts={one.id: "10.0.0.1" for one in members},
        topics=(Topic("a", 3),),
        sizes=None,
    )


ONE = Member(id="id-1", topics=frozenset("a"), owned=frozenset({("a", 2), ("a", 0)}), instance="host-1")


def test_owners_are_listed_by_name_and_partitions_without_an_owner_too() -> None:
    """A person asks who owns what; a partition that the list lacks would look read."""
    idle = Member(id="id-2", topics=frozenset("a"))
    assert owners(group_of(ONE, idle)) == {"host-1": {"a": [0, 2]}, "id-2": {}, "(no member)": {"a": [1]}}
    said = rendered(group_of(ONE, idle), as_json=False).splitlines()
    assert said[:3] == ["host-1: 2 partitions of 1 topic", "  a: 0, 2", "id-2: 0 partitions of 0 topics"]


def test_two_members_with_one_name_are_both_listed() -> None:
    """Two agents with one name are a fault; one of them must not hide the other."""
    twin = Member(id="id-2", topics=frozenset("a"), owned=frozenset({("a", 1)}), instance="host-1")
    assert owners(group_of(ONE, twin)) == {"host-1": {"a": [0, 2]}, "id-2": {"a": [1]}}


def test_the_member_that_leaves_is_given_by_its_lasting_name() -> None:
    """The member id is new at each join, and nobody remembers it."""
    assert plan._leaving("host-1", [ONE]) == "id-1"
    assert plan._leaving("id-1", [ONE]) == "id-1"
    with pytest.raises(typer.BadParameter, match="'host-9' is none of the members host-1"):
        plan._leaving("host-9", [ONE])


@pytest.mark.parametrize(("strategy", "noted"), [("hrw-cooperative", True), ("azimuth-hrw", True), ("range", False)])
def test_a_plan_notes_that_it_has_not_the_settings_of_the_group(
    strategy: str, *, noted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """With caps of its own, a group at rest would otherwise seem to move under its own assignor."""
    plan._print(group_of(ONE, strategy=strategy), [], [])
    said = capsys.readouterr().out
    assert "1 member from 1 client address, 1 topic, 3 partitions" in said
    assert ("the settings of the group's members are not visible" in said) == noted
