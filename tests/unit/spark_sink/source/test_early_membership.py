"""The membership that begins before Spark asks for offsets."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.spark_agent import reader_options
from spark_sink.errors import JoinError
from spark_sink.options.source_options import SourceOptions
from spark_sink.source import early_membership
from spark_sink.source.early_membership import EarlyMembership

GIVEN = {"kafka.bootstrap.servers": "b:1", "kafka.group.id": "g", "subscribe": "t", "agent": "one"}
LATER = {
    "parallelism": "7",
    "maxOffsetsPerTrigger": "10",
    "maxBytesPerTrigger": "1m",
    "minPartitions": "3",
    "landing": '{"path": "/table", "checkpointLocation": "/points"}',
    "traffic": "/folder",
}
OF_MEMBERSHIP = {
    "kafka.bootstrap.servers": "c:1",
    "kafka.group.id": "h",
    "kafka.session.timeout.ms": "7000",
    "subscribe": "u",
    "agent": "two",
    "workers": "3",
    "workersTopic": "workers",
    "assignor": "shuffled",
    "epsilon": "0.2",
    "rack": "az-b",
}


class Membership:
    """One that notes what is called, in place of a member of a group."""

    made: ClassVar[list["Membership"]] = []
    refused = False

    def __init__(self, options: SourceOptions) -> None:
        self.options, self.began, self.left = options, False, False
        self.made.append(self)

    def begin(self) -> None:
        """Join, or fail as a broker says."""
        if self.refused:
            raise JoinError("topic 't' is refused to this user")
        self.began = True

    def leave(self) -> None:
        """Leave."""
        self.left = True


@pytest.fixture(autouse=True)
def memberships(monkeypatch: pytest.MonkeyPatch) -> list[Membership]:
    """Those that were made."""
    monkeypatch.setattr(early_membership, "KafkaMembership", Membership)
    monkeypatch.setattr(Membership, "made", [])
    return Membership.made


@pytest.mark.parametrize("later", [{}, *({name: value} for name, value in LATER.items()), LATER], ids=str)
def test_the_reader_takes_the_membership_whatever_spark_adds(
    memberships: list[Membership], later: dict[str, str]
) -> None:
    """Cores, schemas and the sink's options are known only when Spark runs, and no member depends on them."""
    early = EarlyMembership()
    early.begin(GIVEN)
    taken: Any = early.take(SourceOptions.parse({**GIVEN, **later}))
    assert taken is memberships[0]
    assert (memberships[0].began, memberships[0].left) == (True, False)
    early.leave()
    assert not memberships[0].left


@pytest.mark.parametrize("name", OF_MEMBERSHIP)
def test_a_membership_of_other_options_leaves(memberships: list[Membership], name: str) -> None:
    """It would hold partitions that this reader does not read."""
    early = EarlyMembership()
    early.begin(GIVEN)
    other = SourceOptions.parse({**GIVEN, name: OF_MEMBERSHIP[name]})
    assert early.take(other) is None
    assert memberships[0].left
    assert early.take(other) is None


def test_a_second_reader_of_the_process_joins_by_itself(memberships: list[Membership]) -> None:
    """One membership is for one reader."""
    early = EarlyMembership()
    early.begin(GIVEN)
    options = SourceOptions.parse(GIVEN)
    taken: Any = early.take(options)
    assert taken is memberships[0]
    assert early.take(options) is None


@pytest.mark.parametrize("given", [GIVEN, {**GIVEN, "epsilon": "much"}], ids=["refused", "invalid"])
def test_what_fails_early_fails_again_where_it_is_reported(
    memberships: list[Membership], monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    """The reader's own attempt gives the sentence; the early one must not end the process, nor stay."""
    monkeypatch.setattr(Membership, "refused", True)
    early = EarlyMembership()
    early.begin(given)
    early.leave()
    assert all(one.left for one in memberships)


_REGISTRY = {"schema.registry.url": "http://registry"}
_FORMATS = {
    "raw": {},
    "json of the table": {"valueFormat": "json"},
    "json": {"valueFormat": "json", "valueSchema": '{"a": "int"}'},
    "variant": {"valueFormat": "json", "valueSchema": "variant"},
    "avro": {"valueFormat": "avro", **_REGISTRY},
    "protobuf": {"valueFormat": "protobuf", "valueMessage": "M", **_REGISTRY},
}


@pytest.mark.parametrize("landing", ["direct", "rows"])
@pytest.mark.parametrize("source", _FORMATS.values(), ids=_FORMATS)
def test_what_an_agent_asks_for_early_is_what_its_reader_takes(
    memberships: list[Membership], tmp_path: Path, source: dict[str, str], landing: str
) -> None:
    """Of each format, before its columns are known and after."""
    given = {"bootstrap_servers": "b:1", "group": "g", "table": "/t", "checkpoint": "/c", "subscribe": "t"}
    settings = AgentSettings.load(None, {**given, "agent": "one", "source": source, "landing": landing})
    early, columns = EarlyMembership(), None if source == {} else '{"type": "struct", "fields": []}'
    early.begin(reader_options(settings, tmp_path / "holding"))
    later = reader_options(settings, tmp_path / "holding", columns, land=landing == "direct")
    taken: Any = early.take(SourceOptions.parse({"parallelism": "3", **later}))
    assert [taken] == memberships
