"""The settings of an agent."""

import json
from pathlib import Path

import pytest

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.sink_checks import check_options
from spark_sink.errors import OptionError
from spark_sink.options.source_options import SourceOptions

FILE = """
bootstrap_servers = "kafka:9092"
group = "ingest"
table = "/lake/{topic}"
checkpoint = "/checkpoints/one"
subscribe_pattern = "flights[.].*"
agent = "one"
[kafka]
"session.timeout.ms" = "6000"
[source]
includeHeaders = "true"
[storage]
AWS_REGION = "eu"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file with all that is needed."""
    path = tmp_path / "sink.toml"
    path.write_text(FILE)
    return path


def test_options_of_both_sides_come_from_one_file(config: Path) -> None:
    """The sink's options travel in the source's, so that the reading tasks can land."""
    settings = AgentSettings.load(config, {})
    source, sink = settings.source_options(land=True), settings.sink_options()
    assert sink["path"] == source["positions"] == "/lake/{topic}"
    assert sink["kafka.group.id"] == source["kafka.group.id"] == "ingest"
    assert source["kafka.session.timeout.ms"] == "6000"
    assert sink["storage.AWS_REGION"] == source["storage.AWS_REGION"] == "eu"
    assert json.loads(source["landing"]) == sink
    assert sink["includeHeaders"] == "true"


def test_decoded_columns_are_told_to_both_sides(config: Path) -> None:
    """The sink sees no rows where the reading tasks land them."""
    settings = AgentSettings.load(config, {"source": {"valueFormat": "json"}})
    assert settings.decodes
    assert "landing" not in settings.source_options()
    landing = json.loads(settings.source_options("{}", land=True)["landing"])
    assert landing == settings.sink_options("{}")
    assert landing["columns"] == "{}"


@pytest.mark.parametrize(("landing", "table"), [("direct", "/lake/{topic}"), ("rows", "/lake/all")])
def test_columns_of_the_table_are_accepted_where_each_table_has_its_own(config: Path, landing: str, table: str) -> None:
    """`azimuth sink` builds the query, so it knows that the rows reach the table unchanged."""
    given = {"source": {"valueFormat": "json"}, "landing": landing, "table": table}
    check_options(AgentSettings.load(config, given))


@pytest.mark.parametrize("other", [{"table": "/lake/{topic}"}, {"sink": {"routes": '{"a": "/lake/a"}'}}])
def test_rows_of_several_tables_are_refused_before_the_start(config: Path, other: dict[str, object]) -> None:
    """With the columns that all tables have, each table would lack some of its own fields."""
    given = {"source": {"valueFormat": "json"}, "landing": "rows", "table": "/lake/all", **other}
    with pytest.raises(OptionError, match="set landing=direct, or valueSchema"):
        check_options(AgentSettings.load(config, given))


def test_flags_win_over_variables_and_those_over_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearer to the person, the stronger."""
    monkeypatch.setenv("AZIMUTH_GROUP", "from-environment")
    monkeypatch.setenv("AZIMUTH_AGENT", "from-environment")
    monkeypatch.setenv("AZIMUTH_KAFKA", '{"client.id": "x"}')
    settings = AgentSettings.load(config, {"agent": "from-flag", "rack": None, "spark": {}})
    assert (settings.group, settings.agent, settings.rack) == ("from-environment", "from-flag", None)
    assert settings.kafka == {"client.id": "x"}


@pytest.mark.parametrize(
    ("text", "flags", "says"),
    [
        (FILE, {"subscribe": "a"}, "give one of subscribe"),
        ('group = "g"', {}, "bootstrap_servers, table, checkpoint: needed, as a flag"),
        (FILE + "\n[storag]\n", {}, "unknown setting 'storag'"),
        ("group = ", {}, "is not TOML"),
        ("group = " + "[" * 10_000, {}, "is not TOML"),
        (FILE, {"landing": "sideways"}, "landing: 'sideways', need 'direct' or 'rows'"),
        (FILE, {"max_offsets_per_trigger": 0}, "max_offsets_per_trigger: Input should be .* equal to 1, not 0"),
        (FILE.replace('"one"', '""'), {}, "agent: it is empty"),
        (f"workers = true\n{FILE}", {}, "workers: need a text, in quotes"),
        (f"{FILE}\n[sink]\ncompactEvery = 9", {}, "sink.compactEvery: need a text, in quotes"),
        (f"metrics_port = true\n{FILE}", {}, "metrics_port: true is not a number"),
    ],
    ids=[
        "two subscriptions",
        "missing",
        "unknown",
        "no TOML",
        "deep TOML",
        "no choice",
        "too small",
        "no name",
        "workers true",
        "number for text",
        "port true",
    ],
)
def test_what_has_no_meaning_is_one_sentence(tmp_path: Path, text: str, flags: dict[str, object], says: str) -> None:
    """Before Spark starts, which takes seconds."""
    path = tmp_path / "sink.toml"
    path.write_text(text)
    with pytest.raises(OptionError, match=says):
        AgentSettings.load(path, flags)


@pytest.mark.parametrize(
    ("text", "workers"), [("2", 2), ('"2"', 2), ('{ "a.*" = 3 }', {"a.*": 3})], ids=["number", "text", "table"]
)
def test_workers_may_be_written_as_they_are(tmp_path: Path, text: str, workers: object) -> None:
    """TOML has numbers, and users do not quote them."""
    path = tmp_path / "sink.toml"
    path.write_text(f"workers = {text}\n{FILE}")
    assert SourceOptions.parse(AgentSettings.load(path, {}).source_options()).workers == workers


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """A wrong path."""
    with pytest.raises(OptionError, match=r"none\.toml: cannot be read: No such file"):
        AgentSettings.load(tmp_path / "none.toml", {})


def test_a_file_that_is_no_text_is_one_sentence(tmp_path: Path) -> None:
    """Saved by an editor in another encoding."""
    (tmp_path / "sink.toml").write_bytes('group = "é"'.encode("latin-1"))
    with pytest.raises(OptionError, match=r"sink\.toml: is not TOML: 'utf-8' codec"):
        AgentSettings.load(tmp_path / "sink.toml", {})


def test_positions_are_asked_of_every_table_that_topics_go_to(config: Path) -> None:
    """Else a topic with a route begins where the group's offsets say, which anyone can move."""
    routes = '{"a.*": "/lake/a", "b": "/lake/{topic}"}'
    found = AgentSettings.load(config, {"table": "/lake/rest", "sink": {"Routes": routes}})
    assert json.loads(found.source_options()["positions"]) == ["/lake/rest", "/lake/a", "/lake/{topic}"]


def test_a_variable_that_is_no_json_is_refused_without_its_text(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords come in it, and the sentence goes to the log."""
    monkeypatch.setenv("AZIMUTH_KAFKA", '{"sasl.password": "canary}')
    with pytest.raises(OptionError, match="AZIMUTH_KAFKA is not a JSON object of texts: Unterminated") as raised:
        AgentSettings.load(config, {})
    assert "canary" not in str(raised.value)


def test_a_variable_that_is_too_deep_is_refused(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with the variable, as a file, which Python's parser also gives up."""
    monkeypatch.setenv("AZIMUTH_KAFKA", "[" * 100_000)
    with pytest.raises(OptionError, match="AZIMUTH_KAFKA is not a JSON object of texts: maximum recursion"):
        AgentSettings.load(config, {})


@pytest.mark.parametrize("landing", ['{"storage.AWS_SECRET_ACCESS_KEY": "canary', '["canary"]'])
def test_landing_that_cannot_be_read_is_refused_without_its_text(config: Path, landing: str) -> None:
    """The options of the sink have the keys of the object store."""
    options = AgentSettings.load(config, {}).source_options(land=True) | {"landing": landing}
    with pytest.raises(OptionError, match="option 'landing'") as raised:
        SourceOptions.parse(options)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(("named", "refused"), [({}, False), ({"assignor": "hrw"}, True)], ids=["default", "named"])
def test_a_group_that_the_broker_assigns_needs_no_assignor(
    config: Path, named: dict[str, str], *, refused: bool
) -> None:
    """The agent's default assignor is not the user's choice; one that the user names contradicts the protocol."""
    config.write_text(FILE.replace("[source]", '"group.protocol" = "consumer"\n[source]').replace('"session', '# "'))
    options = AgentSettings.load(config, named).source_options(land=True)
    if refused:
        with pytest.raises(OptionError, match=r"'assignor' cannot be set with kafka[.]group[.]protocol=consumer"):
            SourceOptions.parse(options)
    else:
        assert SourceOptions.parse(options).kafka["group.protocol"] == "consumer"
