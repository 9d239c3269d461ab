"""The faults that `azimuth sink --check` finds: one sentence each, with the place and the way out, and exit code 2."""

import pytest
import structlog

from spark_sink.agent import sink_checks
from spark_sink.agent.agent_name_lock import only_agent_of_its_checkpoint, only_agent_of_its_name
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.cli import main
from tests.unit.spark_sink.checks.fault_places import Places, expect_one_sentence

pytestmark = pytest.mark.usefixtures("patient", "alone")


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
    expect_one_sentence(places, arguments, place, way, capsys)


def test_settings_without_a_fault_are_ok(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a question, and nothing is created."""
    names = places.names
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
    names = places.names
    with only_agent_of_its_name(settings_of(places)), pytest.raises(SystemExit) as ended:
        main([one.format(**names) for one in sink()])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("ok ")]
    assert ended.value.code == 2
    assert line.split()[:2] == ["fault", "name"]
    assert "give each agent a name of its own (--agent)" in line


def test_a_checkpoint_that_is_in_use_on_this_machine_is_taken(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two queries with one checkpoint, Spark ends one, and not before both have read."""
    arguments = [one.format(**places.names) for one in sink()]
    checkpoint = arguments[arguments.index("--checkpoint") + 1]
    held = settings_of(places).model_copy(update={"checkpoint": checkpoint, "agent": "another"})
    with only_agent_of_its_checkpoint(held), pytest.raises(SystemExit) as ended:
        main(arguments)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("ok ")]
    assert ended.value.code == 2
    assert line.split()[:2] == ["fault", "checkpoint"]
    assert "give each agent a checkpoint of its own (--checkpoint)" in line
