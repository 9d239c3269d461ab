"""A job as a process: what its start says."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from assignors.errors import ClaimsAwayError, ClaimsError, FleetError
from producer.testing import MockCluster
from spark_sink.agent.progress_log import StartSteps
from spark_sink.claimed import ClaimedSettings, Round, build
from spark_sink.claimed import job_process as module
from spark_sink.claimed.caught_up import Ending
from spark_sink.errors import OptionError, TableError
from spark_sink.fetch.consumer_properties import consumer_config
from spark_sink.fleet.commit_counts import CommitCounts
from spark_sink.lake.ops_log.ops_counts import OpsCounts
from spark_sink.options.fetch_settings import FetchSettings

pytestmark = pytest.mark.long


@pytest.fixture
def settings(tmp_path: Path) -> ClaimedSettings:
    """A job without brokers."""
    return ClaimedSettings(
        name="g",
        table=str(tmp_path / "t"),
        database=f"sqlite:///{tmp_path}/claims.db",
        kafka={"bootstrap.servers": "localhost:1"},
        topics=("flights",),
    )


@pytest.mark.parametrize(
    ("given", "used_ms", "used_bytes"),
    [
        ({}, "10000", str(8 << 20)),
        ({"request.timeout.ms": "45000"}, "45000", str(8 << 20)),
        ({"message.max.bytes": "20000000"}, "10000", "20000000"),
        ({"queued.max.messages.kbytes": "2048"}, "10000", str(2 << 20)),
    ],
    ids=["default", "the user's", "large messages", "short queue"],
)
def test_a_job_leaves_a_silent_broker_after_ten_seconds(
    given: Mapping[str, str], used_ms: str, used_bytes: str, settings: ClaimedSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With librdkafka's minute no partition is read for that long: all are read together."""
    made: list[FetchSettings] = []

    def fetch(reading: FetchSettings, timeout_s: object) -> object:
        made.append(reading)
        return timeout_s

    monkeypatch.setattr(module, "SampledFetch", fetch)
    with MockCluster(["az-a"]) as cluster:
        cluster.create("flights", [1])
        kafka = {"bootstrap.servers": cluster.bootstrap_servers, **given}
        build(replace(settings, kafka=kafka)).close()
    config = consumer_config(made[0].kafka, 1)
    assert (config["socket.timeout.ms"], config["fetch.max.bytes"]) == (used_ms, used_bytes)


def test_each_step_of_the_start_is_logged_with_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow database and a slow broker look the same from outside; no line has the password."""

    class NoRounds:
        holds = False

        def run(self, _: object) -> None:
            """End at once."""

    def built(settings: ClaimedSettings, steps: StartSteps, *_: object) -> NoRounds:
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


class Stuck:
    """A job in a request that has no answer for as long as the test lasts."""

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds
        self.asks = threading.Event()
        self.answer = threading.Event()

    def run(self, _: threading.Event) -> None:
        """Wait for the answer."""
        self.asks.set()
        self.answer.wait(60)


@pytest.mark.parametrize(("holds", "most_s"), [(False, 2.0), (True, 4.0)])
def test_a_signal_ends_a_job_whose_request_has_no_answer(
    settings: ClaimedSettings, monkeypatch: pytest.MonkeyPatch, *, holds: bool, most_s: float
) -> None:
    """A request in the main thread kept the process from the signal until its own timeout, after 7 to 15 s."""
    job, handlers = Stuck(holds=holds), dict[int, Callable[[int, None], None]]()
    monkeypatch.setattr(module, "build", lambda *_: job)
    monkeypatch.setattr(module, "_HOLDING_S", 3.0)
    monkeypatch.setattr("signal.signal", handlers.__setitem__)
    ended: list[float] = []

    def signalled() -> None:
        assert job.asks.wait(60)
        ended.append(time.monotonic())
        handlers[signal.SIGTERM](signal.SIGTERM, None)

    sender = threading.Thread(target=signalled)
    sender.start()
    module.run(settings)
    took_s = time.monotonic() - ended[0]
    sender.join()
    job.answer.set()
    assert (3.0 if holds else 1.0) <= took_s < most_s + 2


@pytest.mark.parametrize(("ending", "code"), [(Ending.READ, 0), (Ending.REFUSED, 1), (Ending.OVER, 3)])
def test_the_ending_of_a_job_is_the_exit_code(
    settings: ClaimedSettings, monkeypatch: pytest.MonkeyPatch, ending: Ending, code: int
) -> None:
    """As the page says."""

    class Ends:
        holds = False

        def run(self, _: threading.Event) -> Ending:
            """End at once."""
            return ending

    monkeypatch.setattr(module, "build", lambda *_: Ends())
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert module.run(replace(settings, once=True)) == code


def test_a_job_whose_time_is_over_ends_although_its_request_has_no_answer(
    settings: ClaimedSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cron starts the next one; this one's leases end by themselves."""
    job = Stuck(holds=True)
    monkeypatch.setattr(module, "build", lambda *_: job)
    monkeypatch.setattr(module, "_HOLDING_S", 0.5)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert module.run(replace(settings, once=True, max_runtime_s=0.2)) == 3
    job.answer.set()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("text", "file is not a database"),
        ("folder", "is a folder; name a file in it"),
        ("none/claims.db", "there is no folder .*none; create it"),
    ],
)
def test_a_file_that_cannot_keep_claims_ends_the_start(
    settings: ClaimedSettings, tmp_path: Path, name: str, says: str
) -> None:
    """Before it waits for brokers: no round can succeed, and the job would try until its time is over."""
    (tmp_path / "text").write_text("no database " * 100)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ClaimsError, match=says) as raised:
        build(replace(settings, database=f"sqlite:///{tmp_path}/{name}"))
    assert not isinstance(raised.value, ClaimsAwayError)


@pytest.mark.parametrize(
    ("catalog", "error", "says"),
    [
        ({"catalog.type": "foo"}, OptionError, "pyiceberg knows no catalog with type"),
        ({"catalog.uri": "http://127.0.0.1:1"}, FleetError, "no broker"),
    ],
    ids=["an unknown type", "a catalog that is away"],
)
def test_options_of_no_catalog_end_the_start(
    settings: ClaimedSettings, catalog: dict[str, str], error: type[Exception], says: str
) -> None:
    """No round can succeed; a catalog that does not answer may come back."""
    with pytest.raises(error, match=says):
        build(replace(settings, table="iceberg://lake.raw.flights", storage=catalog))


def test_a_database_that_is_away_does_not_end_the_start(settings: ClaimedSettings) -> None:
    """It may come back: the job goes on, here to brokers that are away, too."""
    with pytest.raises(FleetError, match="no broker"):
        build(replace(settings, database="postgresql://u@127.0.0.1:1/x"))


def test_an_error_of_the_start_is_the_commands_error(
    settings: ClaimedSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only one of its thread."""

    def fail(*_: object) -> None:
        raise FleetError("no broker answers")

    monkeypatch.setattr(module, "build", fail)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(FleetError, match="no broker answers"):
        module.run(settings)


def test_the_errors_of_a_round_are_counted_for_the_ops_log() -> None:
    """By topic where a topic was refused, and without one where the round failed as a whole."""
    counts = OpsCounts()
    module.count_errors(Round(failed=True, problem="no broker answers"), CommitCounts(counts))
    module.count_errors(Round(refused={"x": TableError("read-only"), "y": TableError("full")}), CommitCounts(counts))
    module.count_errors(Round(claimed=3, rows=7), CommitCounts(counts))
    found = {row["topic"]: (row["errors"], row["last_error"]) for row in counts.take()}
    assert found == {None: (1, "no broker answers"), "x": (1, "read-only"), "y": (1, "full")}
