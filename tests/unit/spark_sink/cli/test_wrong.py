"""Wrong invocations of `azimuth`: one sentence, exit code 2, no traceback, and at once."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from spark_sink.agent.start import early_spark
from spark_sink.cli import main
from spark_sink.kafka.broker_addresses import check_servers

SERVERS = ("--bootstrap-servers", "localhost:9")
SINK = (*SERVERS, "--group", "g", "--table", "{tmp}/t", "--checkpoint", "{tmp}/c", "--subscribe", "t")
NOWHERE = ("--bootstrap-servers", "localhost:9", "--group", "g")


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no JVM beside the checks of `sink`: each would be awaited for seconds, only to be ended."""
    monkeypatch.setattr(early_spark, "early_spark", nullcontext)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("lag", *NOWHERE, "--kafka", "no.such=1"), "no.such"),
        (("lag", "--bootstrap-servers", "localhost:9", "--group", ""), "'--group': it is empty"),
        (("lag", "--bootstrap-servers", "localhost:99999", "--group", "g"), "'localhost:99999', need host:port"),
        (("lag", *NOWHERE, "--storage", "x"), "need NAME=VALUE"),
        (("plan", *NOWHERE, "--kafka", "security.protocol=SSLL"), 'Invalid value "SSLL"'),
        (("plan", *SERVERS, "--producer", "a", "--topic", "t", "--kafka", "security.protocol=SSLL"), '"SSLL"'),
        (("plan", "--bootstrap-servers", "", "--group", "g"), "need host:port"),
        (("load", *SERVERS, "--flights", "99999999999999999999999"), "less than or equal to 336776"),
        (("load", "--bootstrap-servers", "a b"), "'a b', need host:port"),
        (("sink", *SINK, "--trigger", "never"), "trigger: 'never', need a time as '10 seconds'"),
        (("sink", *SINK, "--driver-memory", "lots"), "driver_memory: 'lots', need a size as '768m'"),
        (("sink", *SINK, "--master", "lcal"), "master: 'lcal' is not a master of Spark; did you mean 'local'?"),
        (("sink", *SINK, "--check", "--master", "lcal"), "master: 'lcal' is not a master of Spark"),
        (("sink", *SINK, "--check", "--spark", "spark.master=lcal"), "spark: spark.master: 'lcal' is not a master"),
        (("sink", *SINK, "--check", "--storage", "AWS_REGON=eu"), "storage: option 'AWS_REGON': delta-rs knows no"),
        (("sink", *SINK, "--catalog", "warehose=/l"), "pyiceberg knows no such option of a catalog; "),
        (("lag", *NOWHERE, "--storage", "AWS_REGON=eu"), "did you mean 'AWS_REGION'?"),
        (("verify", "{tmp}/t", "--storage", "AWS_REGON=eu"), "did you mean 'AWS_REGION'?"),
        (("rewind", "{tmp}/t", "--group", "g", "--storage", "alow_http=true"), "did you mean 'allow_http'?"),
        (("sink", *SINK, "--starting-offsets", "no"), "option 'startingOffsets': 'no' is not JSON"),
        (("sink", *SINK, "--workers", "0"), "option 'workers': '0'"),
        (("sink", *SINK, "--source", "no=1"), "kafka-group has no option 'no'"),
        (("sink", *SINK, "--sink", "no=1"), "delta-exactly-once has no option 'no'"),
        (("sink", *SINK, "--landing", "rows", "--sink", "no=1"), "delta-exactly-once has no option 'no'"),
        (("sink", *SINK, "--kafka", "no.such=1"), "no.such"),
        (("sink", *SINK, "--table", ""), "'--table': it is empty"),
        (("sink", *SINK, "--starting-offsets", ""), "'--starting-offsets': it is empty"),
        (("sink", *SINK, "--rack", " "), "'--rack': it is empty"),
        (("sink", *SINK, "--subscribe-pattern", ""), "'--subscribe-pattern': it is empty"),
        (("sink", *SINK, "--ops-log", ""), "'--ops-log': it is empty"),
        (("agent", "--config", "{tmp}/none", "--http", ""), "'--http': it is empty"),
        (("autoscale", "--config", "{tmp}/none", "--http", ""), "'--http': it is empty"),
        (("autoscale", "explain", "t", "--journal", ""), "no decisions can be read: Is a directory"),
        (("quarantine", "show", "{tmp}/t", "--topic", ""), "'--topic': it is empty"),
        (("load", *SERVERS, "--zones", ""), "'--zones': it is empty"),
        (("lag", *NOWHERE, "--table", "[/lake/t"), "need the address of a table, or a JSON list of addresses"),
        (("plan", *NOWHERE, "--workers", "9" * 5_000), "need a whole number"),
        (("plan", *NOWHERE, "--workers", '{{"a":' * 5_000), "is no JSON"),
        (("plan", *NOWHERE, "--workers", "a{{99999999999}}=1"), "not a regular expression"),
        (("sink", *SINK, "--ops-log", "{tmp}/ops", "--ops-log-days", "9" * 20), "need a whole number, 1 to 36500"),
        (("sink", *SINK, "--workers-topic", ""), "'--workers-topic': it is empty"),
        (("agent", "--config", "{tmp}/none", "--agent", ""), "'--agent': it is empty"),
        (("verify", "{tmp}/t", "--group", ""), "'--group': it is empty"),
        (("rewind", "{tmp}/t", "--group", ""), "'--group': it is empty"),
        (("rewind", "{tmp}/{{topic}}"), "a rewind is of one table: name it, without {topic} and {cluster}"),
        (("quarantine", "list", "{tmp}/t", "--group", ""), "'--group': it is empty"),
        (("lag", *NOWHERE, "--table", "{tmp}/none"), "it holds no position of group 'g'"),
        (("plan", *NOWHERE, "--workers", "*=many"), "need a whole number"),
        (("simulate", "--policy", "none"), "policy 'none': known are"),
        (("simulate", "--slo-s", "0"), "need a finite number above 0"),
        (("simulate", "--worker-rate", "0"), "need a finite number above 0"),
        (("simulate", "--trace", "all", "--html", "{tmp}/no/report.html"), "report.html: the report cannot be written"),
        (("simulate", "--trace", "all", "--html", "{tmp}"), "the report cannot be written: Is a directory"),
        (("load", "--bootstrap-servers", "localhost:9", "--kafka", "no.such=1"), "no.such"),
        (("load", "--bootstrap-servers", "localhost:9", "--kafka", "nonsense"), "need NAME=VALUE"),
        (("verify", "{tmp}/file"), "file: is a file, need the folder of a table"),
        (("plan", *NOWHERE, "--producer", "a", "--topic", "t"), "give either --group or --producer"),
        (("autoscale", "explain", "t", "--journal", "{tmp}/none"), "--journal names another"),
        (("cluster", "up", "--dir", "{tmp}/c", "--zones", ""), "need at least one"),
        (("cluster", "up", "--dir", "{tmp}/file/c"), "cannot be made"),
        (("cluster", "up", "--dir", "{tmp}/a,b"), "has a comma"),
        (("cluster", "status", "--dir", "{tmp}/file"), "is not the folder of a cluster (Not a directory)"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_wrong_invocation_is_one_sentence_and_two(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked of a broker, computed or started before."""
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main([one.format(tmp=tmp_path) for one in arguments])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert says in " ".join(said.err.replace("│", " ").split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("lag", "--bootstrap-servers", "https://u:canary@h", "--group", "g"),
        ("sink", *SINK, "--check", "--table", "http://u:canary@h/x"),
    ],
    ids=lambda one: one[0],
)
def test_no_output_has_the_password_of_an_address(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage errors and the lines of a check are printed by others than the last sentence."""
    with pytest.raises(SystemExit):
        main([one.format(tmp=tmp_path) for one in arguments])
    said = "".join(capsys.readouterr())
    assert "://***@h" in said
    assert "canary" not in said


@pytest.mark.parametrize("command", ["lag --group g", "plan --group g", "plan --producer a --topic t", "load"])
def test_brokers_that_do_not_answer_are_named_in_seconds(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message has the network's error and the place to check; clients would try for half a minute and say less."""
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), *SERVERS])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("azimuth: localhost:9: ")
    assert "Connection refused" in said.err
    assert said.err.endswith("; check --bootstrap-servers and --kafka\n")


@pytest.mark.parametrize("text", ["a", "a:1", "a:1,b:65535", "SASL_SSL://a:1", "[::1]:9092", "10.0.0.1:9092, b"])
def test_addresses_of_brokers_are_taken_as_clients_take_them(text: str) -> None:
    """Ports are optional, and a protocol or brackets are allowed."""
    assert check_servers(text) == text


@pytest.mark.parametrize("text", ["", " ", "a,", "a:", "a:0", "a:65536", "a:x", "a b:1", "http://a:1/x", "::1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """No client would ever reach it."""
    with pytest.raises(ValueError, match="need host:port"):
        check_servers(text)
