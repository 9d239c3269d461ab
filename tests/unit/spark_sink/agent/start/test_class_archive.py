"""Archives of a JVM's classes."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from spark_sink.agent.start.class_archive import archive_of, recording, using
from spark_sink.agent.start.java_command import CACHE_VARIABLE, find_java
from spark_sink.agent.start.spark_archive import java_options


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one jar, and a cache of its own."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "one.jar").write_bytes(b"one")
    return tmp_path / "jars"


def test_another_set_of_jars_has_another_archive(jars: Path) -> None:
    """A JVM refuses an archive of other jars; so the name tells."""
    java = find_java()
    first = archive_of("kind", java, jars)
    assert archive_of("kind", java, jars) == first
    (jars / "two.jar").write_bytes(b"two")
    assert archive_of("kind", java, jars) != first


def test_an_archive_is_found_where_times_have_no_fractions(jars: Path) -> None:
    """Layers of a container image keep whole seconds, so an image's archive would never be found."""
    java = find_java()
    os.utime(jars / "one.jar", ns=(10**18 + 5, 10**18 + 5))
    built = archive_of("kind", java, jars)
    os.utime(jars / "one.jar", ns=(10**18, 10**18))
    assert archive_of("kind", java, jars) == built


def test_two_javas_keep_their_archives(jars: Path, tmp_path: Path) -> None:
    """Preparing for the second one removed the archive of the first."""
    other = tmp_path / "java"
    other.touch()
    for archive in (archive_of("kind", find_java(), jars), archive_of("kind", str(other), jars)):
        with recording(archive):
            next(archive.parent.glob("recording-*")).joinpath(archive.name).touch()
    assert len(list(archive.parent.glob("*.jsa"))) == 2


def test_environments_beside_each_other_keep_their_archives(jars: Path, tmp_path: Path) -> None:
    """A JVM refuses an archive of jars in another folder, so each of two environments needs its own."""
    beside = tmp_path / "beside"
    shutil.copytree(jars, beside)
    java = find_java()
    for archive in (archive_of("kind", java, jars), archive_of("kind", java, beside)):
        with recording(archive):
            next(archive.parent.glob("recording-*")).joinpath(archive.name).touch()
    assert len(list(archive.parent.glob("*.jsa"))) == 2


def test_without_an_archive_the_jvm_gets_no_option(jars: Path) -> None:
    """An option that names no file makes Java warn."""
    assert not using(archive_of("kind", find_java(), jars))


def test_a_recorded_archive_is_used_and_replaces_those_of_its_kind(jars: Path) -> None:
    """Made by the JVM at its own end; what was recorded for former jars of the same folder goes."""
    java = find_java()
    archive = archive_of("kind", java, jars)
    archive.parent.mkdir()
    place = archive.name.rpartition("-")[0]
    older, other = archive.with_name(f"{place}-0.jsa"), archive.with_name("classes-kind-1-0.jsa")
    older.touch()
    other.touch()
    with recording(archive) as options:
        subprocess.run([java, *options.split(), "-version"], check=True, capture_output=True)
    assert archive.stat().st_size > 0
    assert (older.exists(), other.exists()) == (False, True)
    checked = subprocess.run(
        [java, *using(archive).split(), "-Xshare:on", "-version"], check=True, capture_output=True, text=True
    )
    assert "sharing" in checked.stderr
    assert [one.name for one in archive.parent.iterdir() if one.name.startswith("recording")] == []


def test_what_a_killed_recording_has_left_is_removed(jars: Path) -> None:
    """Each has up to 150 MB; a younger one may belong to a recording that runs."""
    archive = archive_of("kind", find_java(), jars)
    for name, age_s in (("recording-old", 7200), ("recording-new", 10)):
        folder = archive.parent / name
        folder.mkdir(parents=True)
        os.utime(folder, (time.time() - age_s,) * 2)
    with recording(archive):
        next(one for one in archive.parent.glob("recording-*") if len(one.name) > 13).joinpath(archive.name).touch()
    assert [one.name for one in archive.parent.glob("recording-*")] == ["recording-new"]


def test_options_of_the_user_come_last_and_may_choose_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """They replaced all of ours, and two collectors keep a JVM from starting."""
    for name in (CACHE_VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user without a home folder
    for chosen in ("-Dx=y -Xmn80m", "-XX:+UseG1GC"):
        options = java_options(chosen, default_heap=True).split()
        assert options[-len(chosen.split()) :] == chosen.split()
        done = subprocess.run([find_java(), *options, "-version"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert sum(one.endswith("GC") for one in options) == 1


def test_a_jvm_that_wrote_nothing_leaves_no_archive(jars: Path) -> None:
    """It was killed, or the disk was full: the next start must not use half a file."""
    archive = archive_of("kind", find_java(), jars)
    with pytest.raises(OSError, match="No such file"), recording(archive):
        pass
    assert list(archive.parent.iterdir()) == []


def test_a_broken_archive_is_passed_over_without_a_word(jars: Path) -> None:
    """A start must not fail for a file that only makes it faster."""
    archive = archive_of("kind", find_java(), jars)
    archive.parent.mkdir()
    archive.write_bytes(b"no archive" * 1000)
    done = subprocess.run(
        [find_java(), *using(archive).split(), "-version"], capture_output=True, text=True, check=True
    )
    assert "rror" not in done.stderr + done.stdout
