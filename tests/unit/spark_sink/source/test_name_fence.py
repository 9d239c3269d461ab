"""A second agent of a name ends, on any host; an agent that returned continues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_sink.options.source_options import SourceOptions
from spark_sink.source.name_fence import NameFence, name_fence

ME, OTHER = {"me": "10.0.0.1"}, {"other": "10.0.0.2"}


class Group:
    """The group's members at each check, and the waits in between."""

    def __init__(self, *looks: Mapping[str, str] | None) -> None:
        self.looks = list(looks)
        self.waited: list[float] = []
        self.fence = NameFence("one", "g", 45, self.look, self.wait)

    def look(self) -> Mapping[str, str] | None:
        """The next look; the last one lasts."""
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def wait(self, seconds: float) -> bool:
        """Wait in no time."""
        self.waited.append(seconds)
        return False


def test_a_second_agent_of_one_name_is_refused_with_the_others_host() -> None:
    """Containers often share a host name, which is the default."""
    group = Group(None, ME | OTHER, ME | OTHER)
    group.fence.compare("me")
    assert group.fence.refusal is not None
    assert "agent 'one' of group 'g' is running already, on 10.0.0.2: give each agent a name" in group.fence.refusal
    assert group.waited == [2, 100]


@pytest.mark.parametrize(
    "looks",
    [(ME,), (ME | OTHER, ME), (ME | OTHER, ME | {"later": "10.0.0.3"}), ({}, {}), (None,)],
    ids=["alone", "the other was dead", "another came later", "not even this one", "never known"],
)
def test_an_agent_that_is_alone_goes_on(looks: tuple[Mapping[str, str] | None, ...]) -> None:
    """The member of a process that was killed stays in the group for a session; one that comes later ends itself."""
    group = Group(*looks)
    group.fence.compare("me")
    assert group.fence.refusal is None


def test_a_member_that_left_looks_no_more() -> None:
    """A query that was stopped while it waited needs no answer."""
    fence = NameFence("one", "g", 45, lambda: ME | OTHER)
    fence.leave()
    fence.compare("me")
    assert fence.refusal is None


SESSION_S = 45.0


@dataclass(frozen=True)
class Membership:
    """One id of an agent in the group.

    Attributes:
        member: the id.
        begin: when the group has it, in seconds.
        end: when the agent gives it up; its next id follows at once.
        stays: seconds for which the group has it after that, at most a session.
    """

    member: str
    begin: float
    end: float
    stays: float


Life = Sequence[Membership]


@st.composite
def lives(draw: st.DrawFn, name: str) -> Life:
    """The ids of one agent; the last one lasts. Former ids leave the group at once, or expire with their session."""
    at = draw(st.floats(0, 100))
    found = []
    for number in range(draw(st.integers(0, 3))):
        begin, at = at, at + draw(st.floats(0.5, 200))
        found.append(
            Membership(f"{draw(st.sampled_from('abc'))}{name}{number}", begin, at, draw(st.floats(0, SESSION_S)))
        )
    return [*found, Membership(f"{draw(st.sampled_from('abc'))}{name}", at, 1e9, SESSION_S)]


def refused_at(life: Life, others: Sequence[Life], delay_s: float) -> float | None:
    """Run the fence of an agent: when it ends, or None. The first check of each id comes `delay_s` after the join."""
    ends = []
    for one in life:
        clock = [one.begin + delay_s]

        def look(clock: list[float] = clock) -> Mapping[str, str]:
            return {
                some.member: "host"
                for each in (life, *others)
                for some in each
                if some.begin <= clock[0] < some.end + some.stays
            }

        def wait(seconds: float, clock: list[float] = clock) -> bool:
            clock[0] += seconds
            return False

        fence = NameFence("one", "g", SESSION_S, look, wait)
        fence.compare(one.member)
        ends += [clock[0]] if fence.refusal is not None else []
    return min(ends, default=None)


CHANGED = [Membership("b1", 0, 10, SESSION_S), Membership("a1", 10, 1e9, SESSION_S)]


@settings(max_examples=100)
@given(life=lives("1"), dead=lives("2"), end=st.floats(0, 100), delay_s=st.floats(0, 60))
@example(life=CHANGED, dead=[], end=0, delay_s=15)
def test_a_lone_agent_never_ends_when_it_joins_again(life: Life, dead: Life, end: float, delay_s: float) -> None:
    """It may have another id before its first check, and its former ids look like other agents for a session."""
    former = [
        Membership(one.member, one.begin, min(one.end, end), one.stays)
        for one in dead
        if one.begin < end <= life[0].begin
    ]
    assert refused_at(life, [former], delay_s) is None


@settings(max_examples=100)
@given(first=lives("1"), second=lives("2"), delay_s=st.floats(0, 60))
def test_of_two_live_agents_of_one_name_one_ends(first: Life, second: Life, delay_s: float) -> None:
    """The agent that joined last finds the other one, because each of its ids is compared."""
    assert refused_at(first, [second], delay_s) is not None or refused_at(second, [first], delay_s) is not None


@given(begin=st.floats(0, 30), ids=st.sampled_from([("a", "b"), ("b", "a")]), delay_s=st.floats(0, 10))
def test_of_two_agents_that_start_at_about_the_same_time_one_continues(
    begin: float, ids: tuple[str, str], delay_s: float
) -> None:
    """Both find each other; if both ended, their supervisors would start both again."""
    first, second = [Membership(ids[0], 0, 1e9, 0)], [Membership(ids[1], begin, 1e9, 0)]
    alone = refused_at(first, [second], 30), refused_at(second, [first], delay_s)
    ends = min(one for one in alone if one is not None)
    loser, winner = (first, second) if alone[0] == ends else (second, first)
    gone = [Membership(loser[0].member, loser[0].begin, ends, 0)]
    assert refused_at(winner, [gone], 30 if winner is first else delay_s) is None


def test_members_without_a_name_or_with_an_instance_id_are_not_compared() -> None:
    """Brokers fence instance ids themselves (KIP-345)."""
    given = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g", "subscribe": "t"}
    assert name_fence(SourceOptions.parse(given)) is None
    assert name_fence(SourceOptions.parse({**given, "kafka.group.instance.id": "one"})) is None
    assert name_fence(SourceOptions.parse({**given, "agent": "one"})) is not None
