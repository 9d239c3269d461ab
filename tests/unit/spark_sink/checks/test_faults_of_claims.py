"""The faults that `azimuth claims run --check` finds: one sentence each, and exit code 2."""

import pytest

from spark_sink.cli import main
from tests.unit.spark_sink.checks.fault_places import Places, expect_one_sentence

pytestmark = pytest.mark.usefixtures("patient", "alone")


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
    expect_one_sentence(places, arguments, place, way, capsys)


@pytest.mark.parametrize("database", ["claims.db", "new.db"])
def test_a_job_without_a_fault_is_ok(places: Places, database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a question, and nothing is created."""
    names = places.names
    with pytest.raises(SystemExit) as ended:
        main([one.format(**names) for one in claims("--database", f"sqlite:///{places.tmp}/{database}")])
    lines = capsys.readouterr().out.splitlines()
    assert not ended.value.code, lines
    assert [line.split()[:2] for line in lines] == [["ok", one] for one in ("brokers", "topics", "claims", "table")]
    assert not (places.tmp / "new.db").exists()
    assert not (places.tmp / "new").exists()
