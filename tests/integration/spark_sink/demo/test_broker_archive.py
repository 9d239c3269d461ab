"""The archive of the broker's classes."""

from pathlib import Path

import pytest

from spark_sink.agent.start.java_command import CACHE_VARIABLE, find_java
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.cluster.broker_archive import archived_classes, make_broker_archive
from spark_sink.demo.cluster.kafka_jars import jars_folder, resolve_jars

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_brokers_map_the_archive_that_a_broker_has_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM passes over an archive that does not fit without a word, and a cluster would start slowly for ever."""
    java = find_java()
    jars = resolve_jars(java)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    jars_folder().parent.mkdir()
    jars_folder().symlink_to(jars)
    assert archived_classes(java, jars_folder()) == []
    archive = make_broker_archive(java, jars_folder())
    assert f"-XX:SharedArchiveFile={archive}" in archived_classes(java, jars_folder())
    with Cluster.up(tmp_path / "cluster", racks=["az"], tied=True) as cluster:
        process = cluster.processes[1].pid
        assert archive.name in Path(f"/proc/{process}/maps").read_text()
