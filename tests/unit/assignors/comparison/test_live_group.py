"""Reads a cluster's description of a group, with members of every kind of client."""

from typing import Any

import pytest
from kafka.errors import ClusterAuthorizationFailedError, GroupAuthorizationFailedError

from assignors.comparison import live_group as module
from assignors.errors import GroupError


class Admin:
    """An admin client of a cluster with one group and the topic t."""

    def __init__(self, *members: tuple[Any, Any]) -> None:
        """Take each member's metadata and assignment."""
        self.members = members

    def describe_groups(self, groups: list[str]) -> dict[str, Any]:
        """As kafka-python."""
        said = [
            {"member_id": str(i), "member_metadata": wants, "member_assignment": has, "client_host": "/127.0.0.1"}
            for i, (wants, has) in enumerate(self.members)
        ]
        return {groups[0]: {"group_state": "Stable", "error": None, "members": said, "protocol_data": "range"}}

    def describe_cluster(self) -> dict[str, Any]:
        """As kafka-python."""
        return {"brokers": [{"broker_id": 1, "rack": None}]}

    def describe_topics(self, _: list[str]) -> list[dict[str, Any]]:
        """As kafka-python."""
        partition = {"partition_index": 0, "replica_nodes": [1], "leader_id": 1}
        return [{"name": "t", "error_code": 0, "partitions": [partition]}]

    def describe_log_dirs(self, _: list[str]) -> list[Any]:
        """As kafka-python."""
        return []


def test_fields_of_foreign_clients_are_read_as_far_as_they_go() -> None:
    """Invalid characters for user data, null for lists, bytes for a subscription: other members are still described."""
    odd = {"topics": None, "user_data": "\ud800{"}
    found = module._read(Admin((odd, {"assigned_partitions": None}), (b"\0", b""), ({"topics": ["t"]}, {})), "g", {})
    assert [sorted(member.topics) for member in found.members] == [[], [], ["t"]]


def test_a_group_of_no_consumers_is_an_error() -> None:
    """Kafka Connect's workers are a group too: a table of noughts would look like an answer."""
    with pytest.raises(GroupError, match="Kafka Connect"):
        module._read(Admin((b"\0\1http://worker:8083", b"")), "connect", {})


def test_a_coordinator_that_moves_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer contains an error, as that of a missing group does; the two must be distinguished."""
    refusals = ["[Error 16] NotCoordinatorError: None", "[Error 14] CoordinatorLoadInProgressError: None"]

    class Moving(Admin):
        """Refuses twice, as while the coordinator loads."""

        def describe_groups(self, groups: list[str]) -> dict[str, Any]:
            """As kafka-python."""
            said = super().describe_groups(groups)
            return {groups[0]: {**said[groups[0]], "error": refusals.pop() if refusals else None}}

        def close(self) -> None:
            """As kafka-python."""

    monkeypatch.setattr(module, "KafkaAdminClient", lambda **_: Moving(({"topics": ["t"]}, {})))
    monkeypatch.setattr(module, "_PAUSE_S", 0)
    assert module.read_group("localhost:9", "g").state == "Stable"


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "there is none that this user may see"),
        (["ingest-1"], "there are 'ingest-1'$"),
        ([*"abcdefgh", "ingest-1", "ingest2"], "there are 'ingest2', 'ingest-1', 'a', 'b', 'c' and 5 more$"),
        (ClusterAuthorizationFailedError(), "its groups could not be listed: "),
    ],
    ids=["none", "one", "many", "refused"],
)
def test_a_group_that_is_not_there_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, others: list[str] | Exception, said: str
) -> None:
    """The message names the groups that are there, the similar ones first."""

    class Without(Admin):
        """Has other groups only."""

        def describe_groups(self, groups: list[str]) -> dict[str, Any]:
            """As kafka-python."""
            found = super().describe_groups(groups)[groups[0]]
            return {groups[0]: {**found, "error": "[Error 69] GroupIdNotFoundError: Group ingest not found."}}

        def list_groups(self) -> list[dict[str, str]]:
            """As kafka-python."""
            if isinstance(others, Exception):
                raise others
            return [{"group_id": one} for one in others]

    monkeypatch.setattr(module, "broker_assigned_members", lambda *_: None)
    for properties in (None, {"bootstrap.servers": "localhost:9"}):
        with pytest.raises(GroupError, match=f"there is no group 'ingest' on this cluster; {said}"):
            module._read(Without(), "ingest", properties)


@pytest.mark.parametrize("raised", [True, False])
def test_a_group_that_the_user_may_not_describe_is_not_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
    *,
    raised: bool,
) -> None:
    """The search for the coordinator raises the refusal, its answer holds it as a text; both name the right."""

    class Closed(Admin):
        """Refuses the user."""

        def describe_groups(self, groups: list[str]) -> dict[str, Any]:
            """As kafka-python."""
            if raised:
                raise GroupAuthorizationFailedError("g")
            said = super().describe_groups(groups)[groups[0]]
            return {groups[0]: {**said, "error": "[Error 30] GroupAuthorizationFailedError: None"}}

        def close(self) -> None:
            """As kafka-python."""

    monkeypatch.setattr(module, "KafkaAdminClient", lambda **_: Closed())
    with pytest.raises(GroupError, match=r"'g' cannot be described: Group.*; this user may not .* DESCRIBE$"):
        module.read_group("localhost:9", "g", properties={})


@pytest.mark.parametrize("code", [3, 29])
def test_topics_that_the_user_may_not_see_are_no_plan_of_none(code: int) -> None:
    """To a client without the right a topic is missing or refused, by the version of the broker's request."""

    class Hidden(Admin):
        """Describes no topic."""

        def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
            """As kafka-python."""
            return [{"name": name, "error_code": code, "partitions": []} for name in names]

    with pytest.raises(GroupError, match=r"topic t and 1 more of group 'g': .* this user may not describe it"):
        module._read(Hidden(({"topics": ["t", "u"]}, {})), "g", {})
