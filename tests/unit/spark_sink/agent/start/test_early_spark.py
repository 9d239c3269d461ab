"""The JVM that is launched before the checks."""

import contextlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.start.early_spark import early_spark
from spark_sink.errors import StartError
from tests.waiting import wait_until

_LIMIT_S = 30.0
_FILES = "spark.sql.streaming.checkpointFileManagerClass"
_CODEGEN = "spark.sql.codegen.factoryMode"
_ARROW = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.fixture
def settings(tmp_path: Path) -> AgentSettings:
    """Of an agent."""
    given = {"bootstrap_servers": "b:1", "group": "g", "table": str(tmp_path), "checkpoint": "c", "subscribe": "t"}
    return AgentSettings.load(None, {**given, "agent": "one"})


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Processes that stand in for a JVM: each says a word, and ends when its standard input does."""
    found: list[subprocess.Popen[bytes]] = []

    def launch(_conf: object, more: Mapping[str, int]) -> SimpleNamespace:
        command = ["/bin/sh", "-c", "echo a word >&2; read _; echo the last word >&2"]
        found.append(subprocess.Popen(command, stdin=subprocess.PIPE, stderr=more["stderr"]))
        return SimpleNamespace(proc=found[0])

    monkeypatch.setattr("spark_sink.agent.start.early_spark.launch_gateway", launch)
    return found


def _conf(settings: AgentSettings, launched: list[subprocess.Popen[bytes]], **changed: object) -> dict[str, str]:
    """The configuration of a session, by settings that were changed."""
    with early_spark(settings.model_copy(update=changed)) as early:
        wait_until(lambda: bool(launched), _LIMIT_S)
        return early.conf


def test_after_a_fault_the_jvm_ends_without_a_word(
    settings: AgentSettings, launched: list[subprocess.Popen[bytes]], capfd: pytest.CaptureFixture[str]
) -> None:
    """A fault that a check finds is one sentence; nothing of a JVM that was never needed stands above it."""
    with contextlib.suppress(StartError), early_spark(settings):
        wait_until(lambda: bool(launched), _LIMIT_S)
        raise StartError("no broker answers")
    assert launched[0].poll() is not None
    assert "word" not in capfd.readouterr().err


def test_what_a_jvm_says_is_shown_once_it_is_needed(
    settings: AgentSettings, launched: list[subprocess.Popen[bytes]], capfd: pytest.CaptureFixture[str]
) -> None:
    """From its first word to its last."""
    with early_spark(settings) as early:
        assert early.gateway().proc is launched[0]
    assert capfd.readouterr().err == "a word\nthe last word\n"


def test_the_error_of_a_launch_is_raised_where_the_jvm_is_needed(
    settings: AgentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault that a check finds comes first."""

    def launch(*_: object) -> None:
        raise OSError("no memory")

    monkeypatch.setattr("spark_sink.agent.start.early_spark.launch_gateway", launch)
    with pytest.raises(StartError), early_spark(settings):
        raise StartError("no broker answers")
    with pytest.raises(OSError, match="no memory"), early_spark(settings) as early:
        early.gateway()


@pytest.mark.parametrize(
    ("checkpoint", "spark", "expected"),
    [
        ("/checkpoints/one", {}, "FileSystemBasedCheckpointFileManager"),
        ("s3a://lake/checkpoints/one", {}, None),
        ("/checkpoints/one", {_FILES: "com.example.Files"}, "com.example.Files"),
    ],
    ids=["local", "object store", "the user's own"],
)
def test_a_local_checkpoint_is_written_without_a_process_for_each_file(
    settings: AgentSettings,
    launched: list[subprocess.Popen[bytes]],
    checkpoint: str,
    spark: dict[str, str],
    expected: str | None,
) -> None:
    """Spark's default starts 16 for each batch; on an object store, and where the user chose, it is as it was."""
    chosen = _conf(settings, launched, checkpoint=checkpoint, spark=spark).get(_FILES)
    assert chosen is None if expected is None else str(chosen).endswith(expected)


@pytest.mark.parametrize(("spark", "expected"), [({}, 2_500), ({_ARROW: "10"}, 10)], ids=["ours", "the user's own"])
def test_arrow_batches_of_rows_are_smaller_than_by_default(
    settings: AgentSettings, launched: list[subprocess.Popen[bytes]], spark: dict[str, str], expected: int
) -> None:
    """With Spark's 10,000 rows, decoded rows take one and a half times the processor time on their way to the sink."""
    assert int(_conf(settings, launched, spark=spark)[_ARROW]) == expected


@pytest.mark.parametrize(
    ("landing", "spark", "expected"),
    [("direct", {}, "NO_CODEGEN"), ("rows", {}, None), ("direct", {_CODEGEN: "FALLBACK"}, "FALLBACK")],
    ids=["files of tasks", "rows", "the user's own"],
)
def test_expressions_are_compiled_only_where_rows_pass_through_spark(
    settings: AgentSettings,
    launched: list[subprocess.Popen[bytes]],
    landing: str,
    spark: dict[str, str],
    expected: str | None,
) -> None:
    """The compiler takes 0.3 s of a start, and pays off after thousands of rows."""
    assert _conf(settings, launched, landing=landing, spark=spark).get(_CODEGEN) == expected
