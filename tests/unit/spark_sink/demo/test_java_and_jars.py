"""Finding Java, and refusing a Java that cannot run the brokers."""

from pathlib import Path

import pytest

from spark_sink.agent.start.java_command import find_java, parse_major
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.cluster.kafka_jars import resolve_jars
from spark_sink.errors import ClusterError


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no version here", None),
    ],
    ids=["usual", "before 9", "no minor", "unknown"],
)
def test_the_major_version_is_read_from_every_form(printed: str, major: int | None) -> None:
    """Java changed how it writes its version; 1.8 is 8."""
    assert parse_major(printed) == major


def _fake_java(folder: Path, version: str) -> None:
    (folder / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    (folder / "java").chmod(0o755)


def test_no_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thing a newcomer may miss."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="install Java 17"):
        find_java()


def test_an_old_java_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka 4 on Java 11 fails with a class file version; ours says it in words."""
    _fake_java(tmp_path, "11.0.2")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ClusterError, match="is Java 11"):
        find_java()


def test_a_java_that_cannot_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for another processor, or cut off while it was copied."""
    (tmp_path / "java").touch(mode=0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=r"java cannot be run \(Exec format error\): install Java 17"):
        find_java()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk or another user's folder is not an error of the network."""
    (tmp_path / "cache").touch()
    monkeypatch.setenv("AZIMUTH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ClusterError, match=r"cannot be kept in .*cache .*AZIMUTH_CACHE"):
        resolve_jars("java")


def test_a_failed_download_leaves_nothing_that_the_next_run_would_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network the first run says so; a later run with one starts afresh."""
    (tmp_path / "bin").mkdir()
    _fake_java(tmp_path / "bin", "17.0.1")
    monkeypatch.setenv("AZIMUTH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ClusterError, match="the first run needs a network"):
        resolve_jars(str(tmp_path / "bin" / "java"))
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_directory_with_other_files_is_left_alone(tmp_path: Path) -> None:
    """`--dir ~` must not remove a home directory."""
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ClusterError, match="holds other files"):
        Cluster.up(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_no_space_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that runs out of disk halts in the middle; better not to start."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(ClusterError, match=r"0.00 GB free under .*, 1 GB needed"):
        Cluster.up(tmp_path / "c")
