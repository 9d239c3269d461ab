"""The start of Spark by an agent, and its message after a failed query."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark import SparkConf

from spark_sink.agent import spark_agent
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.progress_log import StartSteps
from spark_sink.agent.spark_agent import _thrown, about_checkpoint, cause
from spark_sink.agent.spark_session import session
from spark_sink.agent.start.early_spark import EarlySpark, early_spark
from spark_sink.agent.stop_signal import StopSignal

SPARK = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "

TRACE = """Traceback (most recent call last):
  File "x.py", line 1, in commit
    raise HoleError(
spark_sink.errors.HoleError: t/0: the batch begins at offset 5: start again"""

SIGNALLED = TRACE.replace(TRACE.splitlines()[-1], "SystemExit: 0")

LOST = TRACE.replace(TRACE.splitlines()[-1], "EOFError")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{SPARK}[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed: {TRACE}\n SQLSTATE: 38000",
            "t/0: the batch begins at offset 5: start again",
        ),
        (f"{SPARK}Stream closed SQLSTATE: XXKST\n=== Streaming Query ===", "the query ended: Stream closed; the log"),
        (f"{SPARK} SQLSTATE: XXKST", "the query ended: one of its processes was lost; the log"),
        ("", "the query ended: one of its processes was lost; the log"),
        (
            f"{SPARK}[X] Failed when Python streaming data source perform latestOffset: {SIGNALLED}\n SQLSTATE: 38000",
            "the query ended: [X] Failed when Python streaming data source perform latestOffset: SystemExit: 0; the",
        ),
        (
            f"{SPARK}Job aborted due to stage failure\n{LOST}\n\n SQLSTATE: 38000",
            "the query ended: EOFError; the log",
        ),
    ],
    ids=[
        "an error of ours",
        "a process that died",
        "one that died without a word",
        "nothing",
        "a reader ended by a signal",
        "an error without a sentence",
    ],
)
def test_the_sentence_is_found_in_what_spark_makes_of_it(text: str, expected: str) -> None:
    """One line for a person, not a page of two languages' traces."""
    assert cause(text).startswith(expected)


def test_the_sentence_of_a_java_exception_is_found() -> None:
    """A checkpoint in a folder that cannot be made is no lost JVM."""
    said = "An error occurred while calling o6.start.\n: java.io.IOException: mkdir of file:/proc/x failed\n\tat x.Y(Z)"
    assert _thrown(said) == "the query ended: mkdir of file:/proc/x failed; the log above says more"
    assert _thrown(": java.lang.StackOverflowError\n\tat x") == (
        "the query ended: java.lang.StackOverflowError; the log above says more"
    )


def test_a_full_disk_of_the_checkpoint_is_named() -> None:
    """Spark writes its checkpoint in the JVM, whose error has no path; our errors have one already."""
    said = cause(f"{SPARK}java.io.IOException: No space left on device SQLSTATE: XXKST")
    assert about_checkpoint(said, "/disk/checkpoint") == (
        "the query ended: No space left on device: free some space for the checkpoint /disk/checkpoint, or for Spark's "
        "temporary files, and start the agent again: it continues with the same batch"
    )
    for other in ("/lake: the table's storage refused: No space left on device", cause(f"{SPARK}Stream closed")):
        assert about_checkpoint(other, "/disk/checkpoint") == other


@pytest.mark.parametrize(
    "words",
    [
        "Multiple streaming queries are concurrently using metadata.",
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 7.",
    ],
)
def test_a_checkpoint_of_two_queries_is_named(words: str) -> None:
    """Spark names a file without its folder, and says nothing of checkpoints."""
    said = cause(f"{SPARK}{words} SQLSTATE: 40000")
    assert about_checkpoint(said, "/disk/checkpoint") == (
        "the query ended: another query uses the checkpoint /disk/checkpoint: give each agent a checkpoint of its own"
    )


def test_secrets_of_spark_are_in_no_argument_of_its_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration at the JVM's start is visible in the list of processes; the rest is set afterwards."""
    started: list[dict[str, str]] = []

    def launch(conf: SparkConf, _more: object) -> None:
        started.append(dict(conf.getAll()))
        raise OSError("far enough")

    monkeypatch.setattr("spark_sink.agent.start.early_spark.launch_gateway", launch)
    spark = {"spark.hadoop.fs.s3a.secret.key": "canary", "spark.ssl.keyPassword": "canary", "spark.task.cpus": "1"}
    given = {"bootstrap_servers": "b:1", "group": "g", "table": str(tmp_path), "checkpoint": "c", "subscribe": "t"}
    with (
        pytest.raises(OSError, match="far enough"),
        early_spark(AgentSettings.load(None, given | {"spark": spark, "agent": "one"})) as early,
        session(early),
    ):
        pass
    assert "canary" not in str(started)
    assert (started[0]["spark.task.cpus"], started[0]["spark.app.name"]) == ("1", "one")


@pytest.mark.parametrize(("asked", "why"), [(True, "it was stopped"), (False, "it has caught up")])
def test_the_log_says_why_an_agent_has_ended(
    asked: object, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After Ctrl-C the last lines were warnings of Spark; so they were after a run without new records."""
    query = SimpleNamespace(awaitTermination=lambda _: True, stop=lambda: None)
    for name, value in {
        "_served": lambda _: nullcontext(),
        "early_reader": lambda *_: nullcontext(),
        "session": lambda _: nullcontext(SimpleNamespace(version="4")),
        "start": lambda *_: query,
    }.items():
        monkeypatch.setattr(spark_agent, name, value)
    given = {"bootstrap_servers": "a:1", "group": "g", "subscribe": "t", "agent": "one"}
    places = {"table": str(tmp_path / "table"), "checkpoint": str(tmp_path / "checkpoint")}
    stop = SimpleNamespace(asked=asked, wait_for_the_query=lambda: None)
    with caplog.at_level("INFO"):
        spark_agent._ingest(
            AgentSettings.load(None, {**given, **places}),
            cast("EarlySpark", SimpleNamespace(python="python")),
            cast("StopSignal", stop),
            StartSteps(),
        )
    assert caplog.messages[-1] == f"agent 'one' has ended: {why}"
