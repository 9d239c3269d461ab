"""The jar of the broker's assignors: found, or asked for in one sentence, and on the class path of its cluster."""

import zipfile
from pathlib import Path

import pytest

from spark_sink.cli import main
from spark_sink.demo.cluster import JAR_VARIABLE
from spark_sink.demo.cluster.broker_assignors import class_path, install_assignor_jar
from spark_sink.errors import ClusterError


def test_a_missing_jar_is_one_sentence_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker that is asked for a class it does not have ends with a page of Java."""
    monkeypatch.setenv(JAR_VARIABLE, str(tmp_path / "none.jar"))

    with pytest.raises(SystemExit) as ended:
        main(["cluster", "up", "--dir", str(tmp_path / "c"), "--broker-assignor"])
    assert ended.value.code == 2
    assert "none.jar: build it with `make broker`" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("entry", [None, "azimuth/clients/HrwAssignor.class"], ids=["no archive", "another jar"])
def test_a_jar_without_the_assignors_is_one_sentence_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], entry: str | None
) -> None:
    """The storage tool would end with the last lines of a Java stack trace, and leave a directory behind."""
    jar = tmp_path / "other.jar"
    jar.write_text("a download that failed")
    if entry is not None:
        with zipfile.ZipFile(jar, "w") as classes:
            classes.writestr(entry, b"")
    monkeypatch.setenv(JAR_VARIABLE, str(jar))

    with pytest.raises(SystemExit) as ended:
        main(["cluster", "up", "--dir", str(tmp_path / "c"), "--broker-assignor"])
    assert ended.value.code == 2
    assert "other.jar has no class azimuth.broker.HrwAssignor" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "c").exists()


def test_a_jar_of_any_name_is_on_the_class_path(tmp_path: Path) -> None:
    """Java reads only names with `.jar` at their end from a folder, so `azimuth-broker.jar.1` would not be found."""
    jar = tmp_path / "azimuth-broker.jar.1"
    jar.touch()
    (tmp_path / "cluster").mkdir()
    install_assignor_jar(jar, tmp_path / "cluster")
    assert [one.name for one in (tmp_path / "cluster" / "plugins").iterdir()] == ["azimuth-broker.jar"]


def test_an_installed_jar_is_on_the_class_path_of_this_cluster_alone(tmp_path: Path) -> None:
    """A broker that is started again after a kill has to find it, whatever became of the checkout."""
    jar = tmp_path / "azimuth-broker.jar"
    jar.touch()
    directory = tmp_path / "cluster"
    directory.mkdir()
    assert class_path(tmp_path / "kafka", directory) == f"{tmp_path}/kafka/*"
    install_assignor_jar(jar, directory)
    assert (directory / "plugins" / jar.name).is_file()
    assert class_path(tmp_path / "kafka", directory) == f"{tmp_path}/kafka/*:{directory}/plugins/*"


def test_a_folder_that_java_would_cut_in_two_is_refused(tmp_path: Path) -> None:
    """The broker would end with a class that it cannot find."""
    with pytest.raises(ClusterError, match="choose another --dir"):
        install_assignor_jar(tmp_path / "any.jar", tmp_path / "a:b")
