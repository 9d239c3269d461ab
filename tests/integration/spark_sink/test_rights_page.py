"""Each command works with the rights that its row of the page on rights has, and with none of them left out."""

import contextlib
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from assignors.scaling.workers_records import ScaledTopic, WorkersRecord
from assignors.scaling.workers_topic_client import WorkersPublisher
from spark_sink.claimed import ClaimedSettings
from spark_sink.claimed import build as build_job
from spark_sink.cli import main
from spark_sink.demo.cluster import Cluster
from spark_sink.errors import TableError
from spark_sink.fleet.agent_process import build as build_agent
from spark_sink.fleet.agent_process import members
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.options.source_options import SourceOptions
from spark_sink.sink.quarantine.dead_letter_publisher import Publisher, Sent
from spark_sink.source.group_membership import KafkaMembership
from tests.integration.spark_sink.guarded_cluster import ADMIN, DEAD, OPEN, client, guarded_cluster
from tests.signal_handlers import handlers_kept
from tests.unit.spark_sink.sink.quarantine.test_dead_letter_publisher import add
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "rights.md"
WORKERS, COMMITTED, FLEET = "checks.workers", "checks.committed", "probed"
RECORDS = 10


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that allows only what a rule allows."""
    with guarded_cluster(tmp_path_factory.mktemp("guarded") / "cluster") as cluster:
        yield cluster


@dataclass(frozen=True, slots=True)
class Probe:
    """A user whose rights are those of one row of the page.

    Attributes:
        cluster: the guarded cluster.
        tmp: folder of the test.
    """

    cluster: Cluster
    tmp: Path

    def words(self, *more: str) -> list[str]:
        """Options of a command that reach the cluster as this user."""
        kafka = [word for pair in client("probe").items() for word in ("--kafka", "=".join(pair))]
        return ["--bootstrap-servers", self.cluster.bootstrap_servers, *kafka, *more]

    def file(self, name: str, *lines: str, table: str) -> str:
        """Write a settings file with the properties of this user in a table."""
        kafka = [f'"{key}" = "{value}"' for key, value in client("probe").items()]
        file = self.tmp / name
        file.write_text("\n".join([*lines, f"[{table}]", *kafka]))
        return str(file)

    def fleet(self, *more: str) -> str:
        """Write the file of a fleet."""
        lines = [f'name = "{FLEET}"', f'table = "{self.tmp}/fleet/{{topic}}"', *more, "[sources.home]"]
        lines += [f'bootstrap_servers = "{self.cluster.bootstrap_servers}"', f'topics = ["{OPEN}"]']
        return self.file("fleet.toml", *lines, table="sources.home.kafka")


def rights_of(command: str) -> list[AclBinding]:
    """The rights that the page gives to a command, with the names of this test."""
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{command}` |"))
    topics, workers, groups = (cell.strip() for cell in row.strip("|").split("|")[1:])
    wanted = [(ResourceType.TOPIC, WORKERS, one) for one in workers.split(", ") if one != "-"]
    names = {"<group>": COMMITTED, "<fleet>": FLEET, "<workers topic>": WORKERS, "<dead letters>": DEAD}
    for cell, kind in ((topics, ResourceType.TOPIC), (groups, ResourceType.GROUP)):
        for part in cell.replace("`", "").split("; ") if cell != "-" else ():
            operations, _, name = part.partition(" on ")
            for placeholder, value in names.items():
                name = name.replace(placeholder, value)
            ids = name.removeprefix("the transactional ids ")
            of = kind if ids == name else ResourceType.TRANSACTIONAL_ID
            wanted += [(of, ids or OPEN, one) for one in operations.replace(" and ", ", ").split(", ")]
    return [_probes_rule(*one) for one in wanted]


def _probes_rule(kind: ResourceType, name: str, operation: str) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
    named = {"DescribeConfigs": AclOperation.DESCRIBE_CONFIGS}.get(operation) or AclOperation[operation.upper()]
    return AclBinding(kind, name.removesuffix("*"), pattern, "User:probe", "*", named, AclPermissionType.ALLOW)


def _run_main(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert not ended.value.code, arguments


def run_lag(probe: Probe) -> None:
    """The offsets of a group, and the ends of its topics."""
    _run_main("lag", *probe.words("--group", COMMITTED))


def run_lag_of_table(probe: Probe) -> None:
    """The positions of a table, and the ends of its topics."""
    run_claims(probe)
    _run_main("lag", *probe.words("--group", "probe", "--table", f"{probe.tmp}/claimed"))


def run_forecast(probe: Probe) -> None:
    """Leaders and racks of a topic."""
    _run_main("plan", *probe.words("--producer", "az-a", "--topic", OPEN))


def run_plan(probe: Probe) -> None:
    """The members of a live group, and the topics that they read."""
    kafka = {"bootstrap.servers": probe.cluster.bootstrap_servers, "group.id": COMMITTED, **client("admin", ADMIN)}
    options = {f"kafka.{name}": value for name, value in kafka.items()}
    member = KafkaMembership(SourceOptions.parse({**options, "subscribe": OPEN, "agent": "live"}))
    with contextlib.ExitStack() as stack:
        stack.callback(member.leave)
        assert member.assignment(60).partitions
        _run_main("plan", *probe.words("--group", COMMITTED))


def run_claims(probe: Probe) -> None:
    """A round of a job writes every record."""
    kafka = {"bootstrap.servers": probe.cluster.bootstrap_servers, **client("probe")}
    settings = ClaimedSettings(
        name="probe",
        table=f"{probe.tmp}/claimed",
        database=f"sqlite:///{probe.tmp}/claims.db",
        kafka=kafka,
        topics=(OPEN,),
    )
    job = build_job(settings)
    try:
        wait_until(lambda: job.round().rows + _rows(settings.table) >= RECORDS)
    finally:
        job.close()


def run_agent(probe: Probe) -> None:
    """An agent joins the fleet, reads its topic and writes every record."""
    agent, stop = build_agent(FleetSettings.load(Path(probe.fleet()), agent="probe")), threading.Event()
    thread = threading.Thread(target=agent.run, args=(stop,))
    thread.start()
    try:
        wait_until(lambda: _rows(f"{probe.tmp}/fleet/{OPEN}") >= RECORDS, 90)
    finally:
        stop.set()
        thread.join()


def run_fleet_status(probe: Probe) -> None:
    """The live agents, their topics, and the autoscaler's numbers; a fleet without agents is a problem of its own."""
    admin: dict[str, Any] = {"bootstrap.servers": probe.cluster.bootstrap_servers, **client("admin", ADMIN)}
    scaled = ScaledTopic(str(AdminClient(admin).list_topics(timeout=10).cluster_id), FLEET, OPEN)
    WorkersPublisher(admin, WORKERS).publish(scaled, WorkersRecord(workers=2, at_ms=1))
    file = Path(probe.fleet("[workers]", f'topic = "{WORKERS}"'))
    settings = FleetSettings.load(file, agent="live")
    kafka = {**settings.sources["home"].kafka, **client("admin", ADMIN)}
    home = settings.sources["home"].model_copy(update={"kafka": kafka})
    live = members(settings.model_copy(update={"sources": {"home": home}})).start()
    try:
        wait_until(lambda: live.state().view is not None)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            _run_main("fleet", "status", "--config", str(file), "--explain", OPEN, "--json")
    finally:
        live.close()
    [line] = json.loads(said.getvalue())["lines"]
    assert line["published"]["workers"] == 2


def run_autoscale(probe: Probe, *more: str) -> None:
    """A round decides on the group's topic."""
    lines = [f'bootstrap_servers = "{probe.cluster.bootstrap_servers}"', f'workers_topic = "{WORKERS}"']
    lines += [
        f'journal = "{probe.tmp}/scaling.jsonl"',
        "[pipelines.p]",
        f'group = "{COMMITTED}"',
        f'topics = ["{OPEN}"]',
    ]
    _run_main("autoscale", "--once", "--config", probe.file("scaling.toml", *lines, table="kafka"), *more)


def run_sink(probe: Probe) -> None:
    """An agent with Spark reads every record and ends."""
    where = ["--agent", "probe", "--group", COMMITTED, "--subscribe", OPEN, "--trigger", "available-now"]
    where += [
        "--table",
        f"{probe.tmp}/sink",
        "--checkpoint",
        f"{probe.tmp}/checkpoint",
        "--starting-offsets",
        "earliest",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "spark_sink", "sink", "--log-format", "json", *probe.words(*where)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _rows(f"{probe.tmp}/sink") == RECORDS
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"time", "level", "logger", "message", "agent"} <= set.intersection(*(set(one) for one in lines))
    assert "canary" not in done.stderr


def run_pause(probe: Probe) -> None:
    """A topic of a group that reads nothing here is paused."""
    _run_main("pause", OPEN, *probe.words("--group", "paused"))


def run_resume(probe: Probe) -> None:
    """It is resumed."""
    run_pause(probe)
    _run_main("resume", OPEN, *probe.words("--group", "paused"))


def run_publish(probe: Probe) -> None:
    """The records of a quarantine go to the topic of the dead letters."""
    add(f"{probe.tmp}/table", ("t", 0, 1), ("t", 0, 2))
    kafka = {"bootstrap.servers": probe.cluster.bootstrap_servers, **client("probe")}
    assert Publisher(kafka, DEAD).publish(f"{probe.tmp}/table", "probe") == Sent(2)


def _rows(table: str) -> int:
    try:
        return verify(table).rows
    except TableError:
        return 0


RUNS: dict[str, Callable[[Probe], None]] = {
    "lag": run_lag,
    "lag --table": run_lag_of_table,
    "plan --producer": run_forecast,
    "plan --group": run_plan,
    "claims run": run_claims,
    "agent": run_agent,
    "autoscale": run_autoscale,
    "autoscale --apply": lambda probe: run_autoscale(probe, "--apply"),  # creates the workers topic
    "fleet status": run_fleet_status,
    "sink": run_sink,
    "quarantine publish": run_publish,
    "pause": run_pause,
    "resume": run_resume,
}


NEEDS_MORE = {"lag --table": "claims run", "resume": "pause"}  # what must be done first


def withdraw_rights(admin: AdminClient) -> None:
    """Remove every right of the probe."""
    every: tuple[Any, ...] = (ResourceType.ANY, None, ResourcePatternType.ANY, "User:probe", None)
    every += (AclOperation.ANY, AclPermissionType.ANY)
    for gone in admin.delete_acls([AclBindingFilter(*every)]).values():
        gone.result(30)


@pytest.fixture(scope="module")
def filled(guarded: Cluster) -> Cluster:
    """The open topic has records, and a group has committed its beginning."""
    config = {"bootstrap.servers": guarded.bootstrap_servers, **client("admin", ADMIN)}
    producer = Producer(config)
    for number in range(RECORDS):
        producer.produce(OPEN, str(number))
    assert not producer.flush(30)
    with contextlib.closing(Consumer({**config, "group.id": COMMITTED})) as consumer:
        wait_until(lambda: _commits(consumer))
    return guarded


def _commits(consumer: Consumer) -> bool:
    """Commit the beginning, unless the group's coordinator still loads."""
    try:
        consumer.commit(offsets=[TopicPartition(OPEN, one, 0) for one in range(2)], asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            return False
        raise
    return True


@pytest.mark.parametrize("command", RUNS)
def test_a_command_works_with_the_rights_of_its_row(
    filled: Cluster, tmp_path: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The page is the test's table: a right that a command begins to need has to be added there."""
    admin = AdminClient({"bootstrap.servers": filled.bootstrap_servers, **client("admin", ADMIN)})
    given = {one for name in (command, NEEDS_MORE.get(command, command)) for one in rights_of(name)}
    for done in admin.create_acls(list(given)).values():
        done.result(30)
    try:
        probe = AdminClient({"bootstrap.servers": filled.bootstrap_servers, **client("probe")})
        wait_until(lambda: {OPEN, DEAD} & probe.list_topics(timeout=10).topics.keys())
        with handlers_kept():
            RUNS[command](Probe(filled, tmp_path))
    finally:
        withdraw_rights(admin)
        wait_until(lambda: not {OPEN, DEAD} & probe.list_topics(timeout=10).topics.keys())
    said = capfd.readouterr()
    if command.startswith("autoscale"):
        assert "unknown" not in said.out + said.err  # its word for what it may not read


def test_every_row_of_the_page_is_tried() -> None:
    """A row without a test may be wrong."""
    rows = [line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(RUNS)


@pytest.mark.parametrize("command", ["lag", "plan --producer"])
def test_a_command_without_one_of_its_rights_says_so(
    filled: Cluster, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of the rights is superfluous, and none of the answers is wrong without it."""
    admin = AdminClient({"bootstrap.servers": filled.bootstrap_servers, **client("admin", ADMIN)})
    rights = rights_of(command)
    for left_out in rights:
        given = [one for one in rights if one != left_out]
        for done in (admin.create_acls(given) if given else {}).values():
            done.result(30)
        with pytest.raises(AssertionError):
            RUNS[command](Probe(filled, tmp_path))
        assert "Traceback" not in capsys.readouterr().err
        withdraw_rights(admin)
