"""The status of a fleet from outside: the autoscaler's number of a topic that is explained."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from assignors.fleet import Agent, FleetTopic, Membership, View, decide, explain
from assignors.scaling import ScaledTopic, WorkersRecord
from spark_sink.cli import main
from spark_sink.fleet import fleet_status
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.fleet_status import FleetStatus

FILE = """
name = "f"
table = "/lake"
[sources.home]
bootstrap_servers = "127.0.0.1:1"
pattern = ".*"
[workers]
topic = "scaled"
"""
TOPICS = [FleetTopic("c", "id-1", "t", "home"), FleetTopic("c", "id-2", "u", "home")]
RECORD = WorkersRecord(workers=3, at_ms=int(time.time() * 1000) - 5_000, reason="lag 900 s", policy="capacity")
RECORDS = {
    ScaledTopic("c", "f", "t"): RECORD,
    ScaledTopic("c", "other", "u"): RECORD,
    ScaledTopic("d", "f", "u"): RECORD,
}


class Feed:
    """A workers topic with these records."""

    def __init__(self, *_: object) -> None:
        self.records: Mapping[ScaledTopic, WorkersRecord] = RECORDS

    def refresh(self, *_: object, **__: object) -> bool:
        """Change nothing."""
        return False

    def close(self) -> None:
        """Forget the records, as a closed feed may."""
        self.records = {}


def test_the_records_of_the_workers_topic_come_with_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They outlive the feed, and only those of the fleet's group on the topic's cluster are of a topic."""
    (tmp_path / "fleet.toml").write_text(FILE)
    monkeypatch.setattr(fleet_status, "WorkersFeed", Feed)
    settings = FleetSettings.load(tmp_path / "fleet.toml", agent="status")
    _, records, unread = fleet_status._workers(settings, [], [])
    assert not unread
    assert fleet_status._published(records, "f", TOPICS) == {"home/t": RECORD}


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_explain_shows_what_the_autoscaler_published(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it, nothing said why a topic has three readers while the file says one."""
    (tmp_path / "fleet.toml").write_text(FILE)
    view = View((Agent("a"), Agent("b")), 1, ())
    decision = decide(view, TOPICS)
    found = FleetStatus(
        membership=Membership(view=view),
        decision=decision,
        lines=[explain(decision, one.identity) for one in TOPICS],
        problems=[],
        published={"home/t": RECORD},
    )
    monkeypatch.setattr(fleet_status, "collect_status", lambda *_: found)
    command = ["fleet", "status", "--config", str(tmp_path / "fleet.toml"), "--explain", "t", "--explain", "u"]
    with pytest.raises(SystemExit) as ended:
        main([*command, *flags])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    if flags:
        value: dict[str, Any] = json.loads(told)
        assert [(one["published"] or {}).get("workers") for one in value["lines"]] == [3, None]
        return
    assert "the autoscaler published 3 workers" in told
    assert "s ago (capacity: lag 900 s)" in told
    assert told.count("the autoscaler published") == 1
