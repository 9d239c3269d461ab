"""A job as a process: what its start says."""

import logging
from pathlib import Path

import pytest

from producer.testing import MockCluster
from spark_sink.agent.progress_log import StartSteps
from spark_sink.claimed import ClaimedSettings, build
from spark_sink.claimed import job_process as module


def test_each_step_of_the_start_is_logged_with_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow database and a slow broker look the same from outside; no line has the password."""

    class NoRounds:
        def run(self, _: object) -> None:
            """End at once."""

    def built(settings: ClaimedSettings, steps: StartSteps) -> NoRounds:
        build(settings, steps).close()
        return NoRounds()

    monkeypatch.setattr(module, "build", built)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with MockCluster(["az-a"]) as cluster, caplog.at_level(logging.INFO, module.log.name):
        cluster.create("flights", [1])
        servers = cluster.bootstrap_servers
        settings = ClaimedSettings(
            name="g",
            table=str(tmp_path / "t"),
            database=f"sqlite:///{tmp_path}/claims.db",
            kafka={"bootstrap.servers": servers},
            topics=("flights",),
            owner="one",
        )
        module.run(settings)
        said = [record.getMessage() for record in caplog.records if record.name == module.log.name]
    begins, cluster_known, claims, last = said
    assert begins.startswith(f"claims: job one of group 'g' starts: brokers {servers}, claims in ")
    assert cluster_known.startswith("start: cluster ")
    assert "1 topics (" in cluster_known
    assert claims.startswith("start: claims are kept in table 'partition_claims' of sqlite:///")
    assert last.startswith(f"start: job one of group 'g' writes to {tmp_path}/t (")
    assert all(line.endswith(" s)") for line in said[1:])
