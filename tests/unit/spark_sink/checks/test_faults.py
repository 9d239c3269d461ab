"""The faults that `--check` finds: one sentence each, with the place and the way out, and exit code 2."""

import contextlib
import json
import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
import structlog
from confluent_kafka import KafkaError
from deltalake import write_deltalake

from assignors.errors import FleetError
from assignors.fleet import Agent, Membership, View
from producer.testing import MockCluster
from spark_sink.agent import sink_checks
from spark_sink.agent.agent_name_lock import only_agent_of_its_name
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.checks import BrokerChecks, run
from spark_sink.claimed import job_checks
from spark_sink.cli import main
from spark_sink.fleet import agent_checks
from tests.signal_handlers import handlers_kept
from tests.unit.spark_sink.checks.wrong_servers import (
    empty_registry,
    refuse_database_password,
    refuse_password,
    serving,
    strange_certificate,
)

FILE = """
name = "flights"
table = "{tmp}/lake/{{topic}}"
membership = {{ kind = "static", agents = [{{ id = "a" }}] }}
[sources.home]
bootstrap_servers = "{servers}"
topics = ["flights"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The servers and folders of the tests.

    Attributes:
        servers: brokers that are well; `refused` is the only topic that they refuse.
        password: a broker that accepts no password.
        certificate: a broker whose certificate no authority has signed.
        registry: a registry without subjects.
        database: a PostgreSQL that accepts no password.
        port: a port that another process serves.
        tmp: a folder; in it, the tables `strange` and `typed`, the file `file`, and `checkpoint`, which is of another
            table.
    """

    servers: str
    password: str
    certificate: str
    registry: str
    database: str
    port: str
    tmp: Path


def listener() -> socket.socket:
    """A socket that listens on a port of its own."""
    return socket.create_server(("127.0.0.1", 0))


@contextlib.contextmanager
def opened(tmp: Path) -> Iterator[Places]:
    """Start all servers, and fill the folder."""
    with contextlib.ExitStack() as stack:
        mock = stack.enter_context(MockCluster(["az-a"]))
        mock.create("flights", [1])
        mock.create("refused", [1])
        mock.refuse("refused", KafkaError.TOPIC_AUTHORIZATION_FAILED)
        places = Places(
            servers=mock.bootstrap_servers,
            password=stack.enter_context(serving(refuse_password)),
            certificate=stack.enter_context(serving(strange_certificate(tmp))),
            registry=stack.enter_context(empty_registry()),
            database=stack.enter_context(serving(refuse_database_password)),
            port=str(stack.enter_context(listener()).getsockname()[1]),
            tmp=tmp,
        )
        write_deltalake(str(tmp / "strange"), pa.table({"name": ["x"]}))
        write_deltalake(str(tmp / "typed"), pa.table({"topic": ["x"], "partition": ["0"], "offset": [0]}))
        (tmp / "file").touch()
        (tmp / "checkpoint").mkdir()
        (tmp / "checkpoint" / "azimuth-table.json").write_text(json.dumps({"table": "/elsewhere"}))
        (tmp / "mistyped.toml").write_text('tabel = "x"\n')
        with contextlib.closing(sqlite3.connect(tmp / "claims.db")) as made:
            made.execute("CREATE TABLE strange (name TEXT)")
        yield places


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """All servers and folders, once."""
    with opened(tmp_path_factory.mktemp("check")) as found:
        yield found


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer than a user does: on a busy machine every place may be slow, which is a finding of its own."""
    for module in (sink_checks, agent_checks, job_checks):
        monkeypatch.setattr(module, "run", partial(run, limit_s=90))
        monkeypatch.setattr(
            module, "BrokerChecks", lambda kafka, settings, _=0: BrokerChecks(kafka, settings, answer_s=60)
        )


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No other agent: librdkafka's mock cluster does not describe groups. Signal handlers as before."""
    monkeypatch.setattr(sink_checks, "same_name", lambda _: {})
    with handlers_kept():
        yield


def sink(*more: str, servers: str = "{servers}", topic: tuple[str, ...] = ("--subscribe", "flights")) -> list[str]:
    """`azimuth sink --check`, with further arguments; a later one replaces an earlier one."""
    where = ["--bootstrap-servers", servers, "--group", "g", "--table", "{tmp}/new", "--checkpoint", "{tmp}/new-c"]
    return ["sink", "--check", "--agent", "a", *where, *topic, *more]


AVRO = ("--source", "valueFormat=avro", "--source")
FAULTS = [
    pytest.param(sink(servers="127.0.0.1:1"), "127.0.0.1:1", "check --bootstrap-servers", id="wrong port"),
    pytest.param(
        sink("--kafka", "security.protocol=SSL"), "{servers}: ", "check --bootstrap-servers and --kafka", id="protocol"
    ),
    pytest.param(
        sink(
            *("--kafka", "security.protocol=SASL_PLAINTEXT", "--kafka", "sasl.mechanism=PLAIN"),
            *("--kafka", "sasl.username=u", "--kafka", "sasl.password=canary"),
            servers="{password}",
        ),
        "{password}: ",
        "invalid credentials; check --bootstrap-servers and --kafka",
        id="wrong password",
    ),
    pytest.param(
        sink("--kafka", "security.protocol=SSL", servers="{certificate}"),
        "{certificate}: ",
        "certificate verify failed",
        id="wrong certificate",
    ),
    pytest.param(
        sink("--kafka", "security.protocol=SSL", "--kafka", "ssl.ca.location={tmp}/none.pem"),
        "ssl.ca.location={tmp}/none.pem",
        "check --kafka",
        id="no file of the certificate",
    ),
    pytest.param(
        sink("--kafka", "sasl.pasword=canary"), "sasl.pasword", "did you mean 'sasl.password'?", id="property"
    ),
    pytest.param(
        sink(topic=("--subscribe", "flihgts")),
        "topic flihgts on {servers}: there is no such topic",
        "did you mean 'flights'?",
        id="missing topic",
    ),
    pytest.param(
        sink(topic=("--subscribe-pattern", "no-.*")),
        "pattern 'no-.*' matches none of the ",
        "check --subscribe-pattern",
        id="pattern without topics",
    ),
    pytest.param(
        sink(topic=("--subscribe-pattern", "(")),
        "option 'subscribePattern': '('",
        "is not a regular expression: missing )",
        id="bad pattern",
    ),
    pytest.param(
        sink(topic=("--subscribe", "refused")), "topic refused on {servers}", "allow it READ", id="missing right"
    ),
    pytest.param(
        sink(*AVRO, "schema.registry.url=http://u:canary@127.0.0.1:1"),
        "schema registry http://***@127.0.0.1:1: ",
        "check schema.registry.url",
        id="registry away",
    ),
    pytest.param(
        sink(*AVRO, "schema.registry.url={registry}"),
        "schema registry {registry}: there is no subject 'flights-value'",
        "name it with valueSubject",
        id="registry without the subject",
    ),
    pytest.param(
        sink("--table", "{tmp}/strange"),
        "{tmp}/strange: is a table of another writer",
        "give the records their own table",
        id="table not ours",
    ),
    pytest.param(
        sink("--table", "{tmp}/typed"),
        "{tmp}/typed: is a table of another writer: column 'partition' is string, need int32",
        "give the records their own table",
        id="other columns",
    ),
    pytest.param(
        sink("--table", "/proc/azimuth"),
        "/proc/azimuth: files cannot be written there: ",
        "allow this user to, or name another",
        id="folder not writable",
    ),
    pytest.param(sink("--table", "{tmp}/file"), "{tmp}/file: is a file", "need the folder of a table", id="a file"),
    pytest.param(
        sink("--checkpoint", "{tmp}/checkpoint"),
        "checkpoint {tmp}/checkpoint is of the table /elsewhere",
        "give each table a checkpoint of its own",
        id="checkpoint of another table",
    ),
    pytest.param(
        sink("--source", "startingOffset=latest"),
        "kafka-group has no option 'startingoffset'",
        "did you mean 'startingoffsets'?",
        id="mistyped option",
    ),
    pytest.param(
        ["sink", "--check", "--config", "{tmp}/mistyped.toml"],
        "{tmp}/mistyped.toml: unknown setting 'tabel'",
        "did you mean 'table'?",
        id="mistyped key of a file",
    ),
    pytest.param(
        sink("--source", "valueFormat=json", "--source", 'valueSchema={{"id": "bigit"}}'),
        "option 'valueSchema': type 'bigit' is not known",
        "known are decimal(p,s)",
        id="type of a column",
    ),
    pytest.param(
        sink("--sink", "partitionBy=topc"),
        "partition column 'topc' is not among the columns",
        "['topic', ",
        id="partition column",
    ),
    pytest.param(
        sink("--table-format", "iceberg", "--table", "c.n.t", "--sink", "partitionBy=day(when)"),
        "partition column 'when' is not among the columns",
        "'timestamp'",
        id="partition column of Iceberg",
    ),
    pytest.param(
        sink("--checkpoint", "{tmp}/file"), "checkpoint {tmp}/file: is a file", "need a folder", id="checkpoint a file"
    ),
    pytest.param(
        sink("--checkpoint", "{tmp}/new/checkpoint"),
        "checkpoint {tmp}/new/checkpoint: is in the folder of the table {tmp}/new",
        "name a folder outside of it",
        id="checkpoint in the table",
    ),
    pytest.param(
        sink("--metrics-port", "{port}"), "metrics_port {port}: Address already in use", "name another", id="port taken"
    ),
    pytest.param(
        sink("--table", "{tmp}/{{topc}}"),
        "{tmp}/{{topc}}: {{topc}} stands for nothing here",
        "did you mean '{{topic}}'?",
        id="mistyped placeholder",
    ),
    pytest.param(
        sink("--table", "{tmp}/{{cluster}}"),
        "{tmp}/{{cluster}}: {{cluster}} stands for nothing here",
        "known are {{topic}}",
        id="placeholder of fleets",
    ),
    pytest.param(sink("--table", "~/lake"), "~/lake: only a shell", "write the whole path", id="home folder"),
    pytest.param(sink("--checkpoint", "~/c"), "~/c: only a shell", "write the whole path", id="checkpoint at home"),
    pytest.param(sink("--ops-log", "~/ops"), "~/ops: only a shell", "write the whole path", id="ops log at home"),
    pytest.param(["sink", "--chekc"], "No such option: --chekc", "Possible options: --check", id="mistyped flag"),
]


@pytest.mark.parametrize(("arguments", "place", "way"), FAULTS)
def test_each_fault_is_one_sentence_with_the_place_and_the_way_out(
    places: Places,
    arguments: list[str],
    place: str,
    way: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A client alone needs a minute and hundreds of lines for some of them; no secret is repeated."""
    names = {name: str(getattr(places, name)) for name in Places.__slots__}
    with pytest.raises(SystemExit) as ended:
        main([one.format(**names) for one in arguments])
    said = capsys.readouterr()
    found = [line for line in said.out.splitlines() if line.startswith("fault")]
    sentence = " ".join((found[0] if found else said.err).replace("│", " ").split())
    assert ended.value.code == 2
    assert len(found) + bool(said.err) == 1, said
    assert place.format(**names) in sentence
    assert way.format(**names) in sentence
    assert "canary" not in said.out + said.err


def test_settings_without_a_fault_are_ok(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a question, and nothing is created."""
    names = {name: str(getattr(places, name)) for name in Places.__slots__}
    with pytest.raises(SystemExit) as ended:
        main([one.format(**names) for one in sink()])
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert not ended.value.code, lines
    assert not said.err
    assert [line.split()[:2] for line in lines] == [
        ["ok", one] for one in ("brokers", "topics", "group", "table", "checkpoint", "name")
    ]
    assert not (places.tmp / "new").exists()
    assert not (places.tmp / "new-c").exists()


def test_only_findings_are_printed(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the first start there is no group, which a debug message says: it looked like a fault."""

    def new_group(_: object) -> dict[str, str]:
        structlog.get_logger("azimuth.source").debug("the group's members are not known")
        return {}

    monkeypatch.setattr(sink_checks, "same_name", new_group)
    test_settings_without_a_fault_are_ok(places, capsys)


def settings_of(places: Places) -> AgentSettings:
    """Settings of the agent that `sink()` checks."""
    where = {"bootstrap_servers": places.servers, "table": str(places.tmp), "checkpoint": str(places.tmp)}
    return AgentSettings.model_validate({**where, "group": "g", "subscribe": "flights", "agent": "a"})


def test_a_name_that_runs_on_this_machine_is_taken(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    """Two members of one name would take each other's partitions."""
    names = {name: str(getattr(places, name)) for name in Places.__slots__}
    with only_agent_of_its_name(settings_of(places)), pytest.raises(SystemExit) as ended:
        main([one.format(**names) for one in sink()])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("ok ")]
    assert ended.value.code == 2
    assert line.split()[:2] == ["fault", "name"]
    assert "give each agent a name of its own (--agent)" in line


class OneMember:
    """A membership with one live agent, or without a server."""

    def __init__(self, agent: str | None) -> None:
        self._agent = agent

    def observe(self) -> Membership:
        """The live agents."""
        if self._agent is None:
            raise FleetError("the server does not answer")
        return Membership(view=View(members=(Agent(self._agent),)))


@pytest.mark.parametrize(
    ("before", "after", "living", "says"),
    [
        ("{servers}", "127.0.0.1:1", "b", "fault home brokers 127.0.0.1:1: "),
        ('"flights"]', '"flihgts"]', "b", "fault home topics topic flihgts on {servers}: there is no such topic"),
        ("{tmp}/lake/{{topic}}", "/proc/{{topic}}", "b", "fault home table /proc/{{topic}}: files cannot be written"),
        ("[sources", 'status_file = "/proc/s.json"\n[sources', "b", "fault status /proc: files cannot be written"),
        ("[sources", 'status_file = "/tmp"\n[sources', "b", "fault status /tmp: is a folder; name a file in it"),
        (
            "[sources",
            'workers = {{ file = "none.json" }}\n[sources',
            "b",
            "none.json: there is no such file of overrides; write {{}} into it",
        ),
        (
            "[sources",
            'workers = {{ file = "overrides.json" }}\n[sources',
            "b",
            "overrides.json: 'hom/flights': there is no source 'hom'; did you mean 'home/flights'?",
        ),
        (
            "[sources",
            'workers = {{ topic = "azimuth.workers" }}\n[sources',
            "b",
            "azimuth.workers on {servers}: there is no such topic; start `azimuth autoscale --apply`, which creates it",
        ),
        ("topics", "topcis", "b", "sources.home.topcis: unknown setting; did you mean 'topics'?"),
        ('topics = ["flights"]', 'pattern = "("', "b", "source 'home': pattern '(' is not a regular expression"),
        ("name =", "patern = 1\nname =", "b", "patern: unknown setting"),
        (
            'kind = "static", agents = [{{ id = "a" }}]',
            'kind = "redis", url = "redis://x"',
            "a",
            "fault name agent 'a'",
        ),
        (
            'kind = "static", agents = [{{ id = "a" }}]',
            'kind = "redis", url = "redis://x"',
            None,
            "fault name the server",
        ),
    ],
    ids=[
        "port",
        "topic",
        "table",
        "status file",
        "status folder",
        "overrides",
        "source of an override",
        "workers topic",
        "key",
        "pattern",
        "key of no table",
        "name taken",
        "membership away",
    ],
)
def test_faults_of_a_fleet_are_found_before_its_start(  # noqa: PLR0913, PLR0917 -- a row of the table, and fixtures
    places: Places,
    before: str,
    after: str,
    living: str | None,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """One file serves many agents, so one fault stops all of them."""
    monkeypatch.setattr(agent_checks, "members", lambda _: OneMember(living))
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "a")  # the command sets it; the end of the test restores it
    assert before in FILE
    file = tmp_path / "fleet.toml"
    file.write_text(FILE.replace(before, after).format(servers=places.servers, tmp=places.tmp))
    (tmp_path / "overrides.json").write_text('{"hom/flights": 2}')
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--check", "--config", str(file), "--agent", "a"])
    said = capsys.readouterr()
    found = [line for line in said.out.splitlines() if line.startswith("fault")] or [said.err]
    assert ended.value.code == 2
    assert says.format(servers=places.servers) in " ".join(found[0].split())
    assert len(found) == 1, said


def test_the_port_of_the_pages_of_a_fleet_is_checked(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An agent that cannot serve its probes does not start."""
    monkeypatch.setattr(agent_checks, "members", lambda _: OneMember("b"))
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "a")  # the command sets it; the end of the test restores it
    (tmp_path / "fleet.toml").write_text(FILE.format(servers=places.servers, tmp=places.tmp))
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--check", "--config", str(tmp_path / "fleet.toml"), "--http", f":{places.port}"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("ok ")]
    assert ended.value.code == 2
    assert " ".join(line.split()) == f"fault port --http {places.port}: Address already in use; name another"


@pytest.mark.parametrize("command", ["agent", "autoscale"])
@pytest.mark.parametrize("flag", ["--http-token", "--http-certificate", "--http-key"])
def test_options_of_pages_that_are_not_served_are_refused(
    command: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They had no effect without a word, and the operator waited for pages."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--config", str(tmp_path / "any.toml"), flag, str(tmp_path / "file")])
    assert ended.value.code == 2
    sentence = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert f"Invalid value for {flag}: it has no effect without --http, the address of the pages" in sentence


def claims(*more: str, servers: str = "{servers}", topic: str = "flights") -> list[str]:
    """`azimuth claims run --check`, with further arguments; a later one replaces an earlier one."""
    where = ["--bootstrap-servers", servers, "--group", "g", "--table", "{tmp}/new", "--subscribe", topic]
    return ["claims", "run", "--check", *where, "--database", "sqlite:///{tmp}/claims.db", *more]


FAULTS_OF_CLAIMS = [
    pytest.param(
        claims("--table", "{tmp}/{{topc}}"),
        "{tmp}/{{topc}}: {{topc}} stands for nothing here",
        "did you mean '{{topic}}'?",
        id="mistyped placeholder",
    ),
    pytest.param(
        claims("--metrics-port", "{port}"),
        "--metrics-port {port}: Address already in use",
        "name another",
        id="port taken",
    ),
    pytest.param(claims(servers="127.0.0.1:1"), "127.0.0.1:1", "check --bootstrap-servers", id="wrong port"),
    pytest.param(
        claims(
            *("--kafka", "security.protocol=SASL_PLAINTEXT", "--kafka", "sasl.mechanism=PLAIN"),
            *("--kafka", "sasl.username=u", "--kafka", "sasl.password=canary"),
            servers="{password}",
        ),
        "{password}: ",
        "invalid credentials; check --bootstrap-servers and --kafka",
        id="wrong password of the brokers",
    ),
    pytest.param(
        claims("--kafka", "sasl.pasword=canary"), "sasl.pasword", "did you mean 'sasl.password'?", id="property"
    ),
    pytest.param(
        claims(topic="flihgts"),
        "topic flihgts on {servers}: there is no such topic",
        "did you mean 'flights'?",
        id="missing topic",
    ),
    pytest.param(claims(topic="refused"), "topic refused on {servers}", "allow it READ", id="missing right"),
    pytest.param(
        claims("--subscribe-pattern", "("), "pattern '(' is not a regular expression", "missing )", id="bad pattern"
    ),
    pytest.param(
        claims("--database", "postgresql://u:canary@127.0.0.1:1/x"),
        "postgresql+psycopg://***@127.0.0.1:1/x: the database of claims does not answer: ",
        "check --database",
        id="database away",
    ),
    pytest.param(
        claims("--database", "postgresql://u:canary@{database}/x"),
        "postgresql+psycopg://***@{database}/x: ",
        'password authentication failed for user "u"; check --database',
        id="wrong password of the database",
    ),
    pytest.param(
        claims("--database", "sqlite:///{tmp}/none/claims.db"),
        "there is no folder {tmp}/none",
        "create it; check --database",
        id="no folder of the database",
    ),
    pytest.param(claims("--database", "oracle://u:canary@h/x"), "'oracle", "check --database", id="unknown database"),
    pytest.param(
        claims("--claims-table", "strange"),
        "table 'strange' is not a table of claims, it has no column ",
        "name another one; check --database and --claims-table",
        id="table of another program",
    ),
    pytest.param(
        claims("--table", "/proc/azimuth"),
        "/proc/azimuth: files cannot be written there: ",
        "allow this user to, or name another",
        id="folder not writable",
    ),
    pytest.param(
        claims("--table", "{tmp}/strange"),
        "{tmp}/strange: is a table of another writer",
        "give the records their own table",
        id="table not ours",
    ),
]


@pytest.mark.parametrize(("arguments", "place", "way"), FAULTS_OF_CLAIMS)
def test_each_fault_of_a_job_with_claims_is_one_sentence(
    places: Places, arguments: list[str], place: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job repeats its attempts for ever, because a database may come back; a check says it once."""
    test_each_fault_is_one_sentence_with_the_place_and_the_way_out(places, arguments, place, way, capsys)


@pytest.mark.parametrize("database", ["claims.db", "new.db"])
def test_a_job_without_a_fault_is_ok(places: Places, database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a question, and nothing is created."""
    names = {name: str(getattr(places, name)) for name in Places.__slots__}
    with pytest.raises(SystemExit) as ended:
        main([one.format(**names) for one in claims("--database", f"sqlite:///{places.tmp}/{database}")])
    lines = capsys.readouterr().out.splitlines()
    assert not ended.value.code, lines
    assert [line.split()[:2] for line in lines] == [["ok", one] for one in ("brokers", "topics", "claims", "table")]
    assert not (places.tmp / "new.db").exists()
    assert not (places.tmp / "new").exists()
