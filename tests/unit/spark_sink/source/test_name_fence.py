"""A second agent of a name ends, on any host; an agent that returned continues."""

from collections.abc import Mapping

import pytest

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
    assert group.waited == [2, 50]


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


def test_members_without_a_name_or_with_an_instance_id_are_not_compared() -> None:
    """Brokers fence instance ids themselves (KIP-345)."""
    given = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g", "subscribe": "t"}
    assert name_fence(SourceOptions.parse(given)) is None
    assert name_fence(SourceOptions.parse({**given, "kafka.group.instance.id": "one"})) is None
    assert name_fence(SourceOptions.parse({**given, "agent": "one"})) is not None
