"""The settings of a fleet, and the messages about invalid ones."""

import threading
from pathlib import Path
from typing import cast

import pytest

from assignors.fleet import FleetAgent, StaticMembers
from spark_sink.cli import main
from spark_sink.errors import OptionError
from spark_sink.fleet import periodic_reports
from spark_sink.fleet.agent_process import _ingest, members
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.fleet_status import _observe
from spark_sink.fleet.settings_tables import _WITHOUT_EFFECT
from spark_sink.kafka.client_property_names import librdkafka_config

_ASKED = 5

GOOD = """
agent = "a"
name = "f"
table = "/lake/{cluster}"
[sources.one]
bootstrap_servers = "127.0.0.1:9092"
pattern = ".*"
kafka = { "client.id" = "x" }
[sources.two]
bootstrap_servers = "127.0.0.1:9093"
topics = ["t"]
[workers]
default = 2
patterns = { "big.*" = 3 }
overrides = { "t" = ["a", "b"], "u" = 4 }
[membership]
kind = "static"
agents = [{ id = "a" }, { id = "b", capacity = 2.0 }]
"""


def test_a_file_serves_all_agents_and_the_environment_tells_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings become values of the fleet."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "b")
    monkeypatch.setenv("AZIMUTH_FLEET_CAPACITY", "2.5")
    found = FleetSettings.load(file)
    assert (found.agent_id.id, found.agent_id.capacity) == ("b", 2.5)
    assert "division=3" in found.agent_id.settings, "agents that divide partitions in another way must not mix with it"
    assert found.kafka("one") == {"bootstrap.servers": "127.0.0.1:9092", "client.id": "x"}
    assert found.fleet_workers.overrides == {"t": ("a", "b"), "u": 4}
    assert found.home == "one"
    assert isinstance(members(found), StaticMembers)
    kafka, static = '[membership]\nhome = "two"', GOOD[GOOD.index("[membership]") :]
    file.write_text(GOOD.replace(static, kafka))
    assert FleetSettings.load(file).home == "two"


def test_two_sources_whose_names_are_one_name_in_iceberg_are_refused(tmp_path: Path) -> None:
    """Topics of the same name in two clusters have other records at the same offsets."""
    file = tmp_path / "fleet.toml"
    iceberg = GOOD.replace("[sources.one]", f'[catalog]\nwarehouse = "{tmp_path}"\n[sources.eu-west]')
    iceberg = iceberg.replace('"/lake/{cluster}"', '"lake.raw.{cluster}"\ntable_format = "iceberg"')
    file.write_text(iceberg)
    assert FleetSettings.load(file).address("eu-west") == "iceberg://lake.raw.eu_west"
    file.write_text(iceberg.replace("[sources.two]", "[sources.eu_west]"))
    with pytest.raises(OptionError, match=r"'eu-west' and 'eu_west' have one table, iceberg://lake\.raw\.eu_west"):
        FleetSettings.load(file)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("/lake/{cluster}", "/lake", "put {cluster} into the address"),
        ('pattern = ".*"', 'pattern = "("', "not a regular expression"),
        ('pattern = ".*"', "", "give topics, a pattern, or both"),
        ('agent = "a"', "", "agent is missing, and all agents share this file: set --agent"),
        ('agent = "a"', 'agent = "a"\nnonsense = 1', "nonsense: unknown setting"),
        ('agent = "a"', 'agent = "a"\ncapacity = 0', "capacity=0"),
        ('agent = "a"', 'agent = "a"\nlanes = 0', "lanes=0"),
        ('agent = "a"', 'agent = "a"\nepsilon = -1', "epsilon=-1"),
        ('agent = "a"', 'agent = "c"', "'c' is none of the static members"),
        ("default = 2", "default = 0", "workers: 0"),
        ("default = 2", "default = true", "workers.default: true is not a number"),
        ('"big.*" = 3', '"big.*" = true', "workers.patterns.big.*: true is not a number"),
        ('["a", "b"]', "true", "workers.overrides.t: true is not a number"),
        ('["a", "b"]', "[]", "override for 't'"),
        ('kind = "static"', 'kind = "zookeeper"', "membership: kind 'zookeeper', need 'kafka', 'redis' or 'static'"),
        ("[sources.one]", "[sources.one", "is not TOML"),
        ("[sources.one]", "deep = " + "[" * 10_000, "is not TOML"),
        ('agent = "a"', 'agent = ""', "agent: '' is not a name"),
        ('name = "f"', 'name = " "', "name: ' ' is not a name"),
        ('name = "f"', 'name = "f/x"', "name: 'f/x' is not a name"),
        ("[sources.one]", '[sources.""]', "'' is not a name"),
        ('table = "/lake/{cluster}"', 'table = ""', "table: it is empty"),
        ('id = "b"', 'id = ""', "'' is not a name"),
        ('agent = "a"', 'agent = "a"\nlanes = 1000000000', "lanes=1000000000, need 1 to 64"),
        ('agent = "a"', 'agent = "a"\nsession_s = inf', "session_s=inf, need seconds above 0, and 1800 at most"),
        ('agent = "a"', 'agent = "a"\nflush_s = inf', "flush_s: Input should be less than or equal to 3600, not inf"),
        (
            'agent = "a"',
            'agent = "a"\ndiscover_s = nan',
            "discover_s: Input should be less than or equal to 3600, not nan",
        ),
        ('agent = "a"', 'agent = "a"\ncapacity = inf', "capacity=inf"),
        ('agent = "a"', 'agent = "a"\nepsilon = inf', "epsilon=inf"),
        ("9093", "9092", "sources 'one' and 'two' both read 't' from 127.0.0.1:9092: take it out"),
        ("default = 2", 'default = 2\ntopic = ""', "workers.topic: no topic is named ''"),
        ('topics = ["t"]', 'topics = ["t", "a/b"]', "source 'two': no topic is named 'a/b'"),
        ('topics = ["t"]', 'topics = "t"', "sources.two.topics: need a list, in brackets"),
        ("default = 2", "default = 2\nweights = { t = -1.0 }", "weight of 't': -1.0, need a finite number"),
        ("table =", 'balance = "bytes"\ntable =', "balance: 'bytes', need 'count' or 'volume'"),
        ("table =", 'balance = "volume"\ntable =', "balance = 'volume' needs the topics' volumes: set workers.topic"),
        (
            "table =",
            'ops_log = "/lake/ops"\ntable =',
            "ops_log '/lake/ops' is at, above or below an address",
        ),
        ("table =", 'ops_log = "/ops"\nops_log_s = 0.1\ntable =', "ops_log_s: "),
        ("{cluster}", "{cluster}/{topc}", "{topc} stands for nothing here; did you mean '{topic}'?"),
        ("/lake/{cluster}", "~/lake/{cluster}", "only a shell replaces ~ by the home folder; write the whole path"),
        ('{ "t"', '{ "onne/t"', "workers.overrides 'onne/t': there is no source 'onne'; did you mean 'one/t'?"),
        ('{ "t"', '{ "x/t"', "workers.overrides 'x/t': there is no source 'x'; known are one, two"),
        ('agent = "a"', 'agent = "a"\nepsilon = nan', "fleet.toml: epsilon=nan, need a finite number"),
        ("client.id", "no.such.property", 'No such configuration property: "no.such.property"'),
        ("[sources.one]", '[storage]\nAWS_REGON = "eu"\n[sources.one]', "option 'AWS_REGON': delta-rs knows no"),
    ],
    ids=[
        "one table",
        "pattern",
        "no topics",
        "no agent",
        "unknown",
        "capacity",
        "lanes",
        "epsilon",
        "static",
        "workers",
        "workers true",
        "pattern true",
        "override true",
        "override",
        "membership",
        "toml",
        "deep toml",
        "empty agent",
        "blank name",
        "name of a folder",
        "empty source",
        "empty table",
        "empty static agent",
        "too many lanes",
        "endless session",
        "endless flush",
        "discover nan",
        "capacity inf",
        "epsilon inf",
        "twins",
        "workers topic",
        "topic",
        "topics that are no list",
        "weight",
        "balance",
        "balance without weights",
        "ops log among the tables",
        "ops log too often",
        "mistyped placeholder",
        "home folder",
        "mistyped source",
        "unknown source",
        "epsilon nan",
        "property",
        "mistyped storage",
    ],
)
def test_a_wrong_file_is_one_sentence_and_exit_code_2(
    before: str, after: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, the value and the way out."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--config", str(file)])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith("azimuth: ")
    assert error.count("\n") == 1


def test_bytes_that_are_no_text_are_a_wrong_file_too(tmp_path: Path) -> None:
    """Such as a file that was saved in another encoding."""
    file = tmp_path / "fleet.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match="is not TOML"):
        FleetSettings.load(file)


@pytest.mark.parametrize("field", ["SOURCES", "WORKERS", "SOURCES__ONE__TOPICS"])
def test_an_environment_variable_that_is_no_json_is_an_expected_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    """Where a value has parts, the environment gives it as JSON."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    monkeypatch.setenv(f"AZIMUTH_FLEET_{field}", "x")
    with pytest.raises(OptionError, match="need JSON"):
        FleetSettings.load(file)


def test_the_balance_is_declared_only_if_it_is_by_volume(tmp_path: Path) -> None:
    """Agents that balance in another way must not mix; by default an agent declares what earlier versions declare."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    by_count = FleetSettings.load(file)
    assert not [one for one in by_count.agent_id.settings if one.startswith(("balance=", "workers.weights="))]
    volume = GOOD.replace("table =", 'balance = "volume"\ntable =')
    file.write_text(volume.replace("default = 2", "default = 2\nweights = { t = 3.0 }"))
    found = FleetSettings.load(file)
    assert (found.placement.by, found.fleet_workers.weights) == ("volume", {"t": 3.0})
    changed = set(found.agent_id.settings) - set(by_count.agent_id.settings)
    assert {one.partition("=")[0] for one in changed} == {"balance", "workers.weights"}


def test_a_property_of_the_home_cluster_without_a_meaning_is_an_expected_error(tmp_path: Path) -> None:
    """Membership speaks by another client than the one that reads; it says so in the same way."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD[: GOOD.index("[membership]")].replace('"client.id" = "x"', '"metadata.max.age.ms" = "soon"'))
    with pytest.raises(OptionError, match="source 'one': kafka: "):
        members(FleetSettings.load(file))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("session.timeout.ms", "session_s of the fleet"),
        ("max.poll.interval.ms", "session_s of the fleet"),
        ("group.protocol", "assignment of the fleet"),
    ],
)
def test_a_property_of_a_group_is_refused_with_the_setting_in_its_place(
    name: str, instead: str, tmp_path: Path
) -> None:
    """The fleet has its own, so it had no effect."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace("client.id", name))
    with pytest.raises(OptionError, match=f"sources.one.kafka: '{name}' has no effect in a fleet; set {instead}"):
        FleetSettings.load(file)


def test_only_properties_without_an_effect_are_refused() -> None:
    """Each of them would reach no consumer of a lane: they are left out, or the lane has its own."""
    for name in _WITHOUT_EFFECT:
        assert name == "group.id" or librdkafka_config({name: "x"}) == {}
    assert librdkafka_config({"fetch.min.bytes": "1"})


def test_who_looks_at_a_static_fleet_need_not_be_listed(tmp_path: Path) -> None:
    """`azimuth fleet status` is no agent."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace('agent = "a"', ""))
    found = _observe(FleetSettings.load(file, agent="status"))
    assert found.view is not None
    assert found.view.ids == ("a", "b")


def test_a_status_file_that_cannot_be_written_is_said_once_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent works on, and ends without a traceback."""
    monkeypatch.setattr(periodic_reports, "_STATUS_S", 0.01)
    asked: list[float] = []
    stop = threading.Event()

    class Quiet:
        """An agent that only tells how it stands."""

        def status(self) -> dict[str, float]:
            """Something."""
            asked.append(0.0)
            if len(asked) > _ASKED:
                stop.set()
            return {}

        def run(self, ended: threading.Event) -> None:
            """Wait."""
            assert ended.wait(30)

    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace('agent = "a"', f'agent = "a"\nstatus_file = "{tmp_path}/none/status.json"'))
    _ingest(cast("FleetAgent", Quiet()), FleetSettings.load(file), stop)
    assert caplog.text.count("the status cannot be written") == 1


def test_the_memory_of_an_agent_is_one_budget_for_all_sources_and_lanes(tmp_path: Path) -> None:
    """The clients' queues, records read, and records being written; a property that a source sets stays."""
    file = tmp_path / "fleet.toml"
    file.write_text("memory_bytes = 64000000\nlanes = 5\n" + GOOD)
    found = FleetSettings.load(file)
    queues = [found.reading(name)["queued.max.messages.kbytes"] * 1024 * 5 for name in found.sources]
    assert 63_000_000 < sum(queues) + 2 * 2 * found.buffer_bytes <= 64_000_000
    file.write_text(GOOD.replace('"client.id" = "x"', '"queued.max.messages.kbytes" = "7"'))
    assert FleetSettings.load(file).reading("one")["queued.max.messages.kbytes"] == "7"


def test_consumers_of_an_agent_with_a_zone_read_from_the_closest_replica(tmp_path: Path) -> None:
    """The zone was billed and not used: bytes crossed zones where a replica was in the agent's own."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    assert "client.rack" not in FleetSettings.load(file).reading("one")
    file.write_text('zone = "az-a"\n' + GOOD)
    assert FleetSettings.load(file).reading("one")["client.rack"] == "az-a"
    assert "client.rack" not in FleetSettings.load(file).kafka("one"), "for consumers alone"
    file.write_text('zone = "az-a"\n' + GOOD.replace('"client.id" = "x"', '"client.rack" = "b"'))
    assert FleetSettings.load(file).reading("one")["client.rack"] == "b"


def test_the_file_of_overrides_is_beside_the_one_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was looked for in the working directory: the same file had overrides in one shell and none as a service."""
    file = tmp_path / "fleet.toml"
    for named, meant in (("o.json", tmp_path / "o.json"), ("/etc/o.json", Path("/etc/o.json"))):
        file.write_text(GOOD.replace("[workers]\n", f'[workers]\nfile = "{named}"\n'))
        for folder in (tmp_path, Path("/")):
            monkeypatch.chdir(folder)
            assert FleetSettings.load(file).workers.file == meant


JSON = """
value_format = "json"
value_schema = '{"id": "bigint"}'
unknown_fields = "ignore"
"""


def test_the_format_of_values_is_that_of_a_query(tmp_path: Path) -> None:
    """The same options under the spelling of the file; a fleet of raw records declares none of them."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    raw = FleetSettings.load(file)
    assert not raw.rows("one").decodes
    assert not [one for one in raw.agent_id.settings if one.startswith("value")]
    file.write_text(JSON + GOOD)
    found = FleetSettings.load(file)
    assert (found.rows("two").value.name, found.rows("two").value.unknown) == ("json", "ignore")
    assert [one for one in found.agent_id.settings if one.startswith("valueSchema=")]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('value_format = "csv"', "setting 'value_format': 'csv', need one of"),
        ('value_format = "json"', "value_format=json needs the setting 'value_schema' with"),
        ('value_format = "avro"', "needs the setting 'schema_registry.url'"),
        ('value_schema = "{}"', "setting 'value_schema' has no effect without value_format=json"),
        ('partition_by = "day"', "day"),
    ],
)
def test_an_invalid_format_of_values_is_one_sentence(
    tmp_path: Path, line: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 before any connection."""
    file = tmp_path / "fleet.toml"
    file.write_text(f"{line}\n{GOOD}")
    with pytest.raises(SystemExit) as end:
        main(["agent", "--config", str(file), "--check"])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert named in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("table", ["/lake/{cluster}_quarantine", "/lake/x{cluster}"])
def test_a_table_with_the_address_of_a_quarantine_is_refused(tmp_path: Path, table: str) -> None:
    """Also if only one source's name makes it one."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace("/lake/{cluster}", table).replace("[sources.two]", "[sources.one_quarantine]"))
    with pytest.raises(OptionError, match=r"the rows would go to .*, which is the address for the bad records of"):
        FleetSettings.load(file)
