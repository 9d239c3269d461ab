"""Pages keep pace with the code, as far as that needs no broker: files that they show load, each option is there."""

import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from prometheus_client import CollectorRegistry

import spark_sink
from assignors.scaling.evaluator_settings import ScalingSettings
from producer.prometheus import TrafficCollector
from spark_sink.agent.agent_metrics import Metrics
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.claimed.job_metrics import JobMetrics
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.lake.ops_log import ops_writer
from spark_sink.lake.ops_log.ops_counts import OpsCounts, Written
from spark_sink.lake.ops_log.ops_settings import OpsSettings
from spark_sink.lake.ops_log.ops_table import SCHEMA
from spark_sink.monitoring.live import ScalingFigures
from spark_sink.monitoring.live.status_metrics import StatusCollector
from spark_sink.options.source_options import _KNOWN as SOURCE
from spark_sink.options.source_options import SourceOptions
from spark_sink.sink.sink_options import _KNOWN as SINK
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source.query_metrics import QueryMetrics
from tests.unit.spark_sink.monitoring.live.test_status_server import STATUS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Where a language is tested: Python, commands and the site in tests/acceptance, files here.
TESTED = {"python", "bash", "console", "toml"}
# A query for another program, settings of a broker, a line of a log, and a file like those that
# test_trace_file.py reads; tests/unit/deploy checks the page on Kubernetes.
SHOWN = {
    ("broker.md", "properties"),
    ("deploy.md", "sql"),
    ("ops-log.md", "sql"),
    ("commands.md", "text"),
    ("scaling.md", "text"),
    ("kubernetes.md", "yaml"),
    ("kubernetes.md", "json"),
}

IN_THE_CHECKOUT = pytest.mark.skipif(not (ROOT / "broker").is_dir(), reason="a wheel is tested outside the checkout")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block, those within lists, too."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^ *```(\S*)[^\n]*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [(language, textwrap.dedent(block)) for language, block in found]


def toml(name: str) -> list[str]:
    """The files that a page shows."""
    return [block for page in PAGES if page.name == name for language, block in blocks(page) if language == "toml"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_is_of_a_language_that_is_tested(page: Path) -> None:
    """Or it is listed here, with the reason."""
    languages = {language for language, _ in blocks(page)}
    assert {one for one in languages - TESTED if (page.name, one) not in SHOWN} == set()


def test_every_file_that_a_page_shows_is_loaded_by_a_test() -> None:
    """A page with a new one has to be added below."""
    with_files = {page.name for page in PAGES if toml(page.name)}
    assert with_files == {"lake.md", "iceberg.md", "deploy.md", "fleet.md", "scaling.md", "ops-log.md"}


@pytest.mark.parametrize(
    ("name", "first"), [("lake.md", "lake.md"), ("deploy.md", "lake.md"), ("iceberg.md", "iceberg.md")]
)
def test_the_files_of_an_agent_load(name: str, first: str, tmp_path: Path) -> None:
    """The first one of the page on tables is whole; the others are parts, laid over it."""
    whole = tomllib.loads(toml(first)[0])
    for block in toml(name):
        part = tomllib.loads(block)
        flags = {**whole, **{key: value for key, value in part.items() if key in AgentSettings.model_fields}}
        assert part.keys() <= AgentSettings.model_fields.keys()
        settings = AgentSettings.load(None, flags)
        assert settings.source_options()["positions"].removeprefix("iceberg://") == settings.table
    (tmp_path / "sink.toml").write_text(toml("lake.md")[0])
    assert AgentSettings.load(tmp_path / "sink.toml", {}).workers == "1"


def test_the_file_of_a_fleet_loads(tmp_path: Path) -> None:
    """As they stand, with the agent's name from outside: the smallest and the whole; other blocks are parts of one."""
    smallest, whole, *parts = toml("fleet.md")
    file = tmp_path / "fleet.toml"
    file.write_text(smallest)
    assert FleetSettings.load(file, agent="agent-1").sources.keys() == {"home"}
    for part in ["", *parts, *toml("ops-log.md")]:
        file.write_text(part + whole)
        assert FleetSettings.load(file, agent="agent-1").home == "home"
    shown = {name: value for name, value in tomllib.loads(whole).items() if not isinstance(value, dict)}
    others = {name for name, value in shown.items() if value != FleetSettings.model_fields[name].default}
    assert others == {"name", "table", "status_file"}  # the page says that all other values are the defaults


def test_the_file_of_the_autoscaler_loads(tmp_path: Path) -> None:
    """As it stands."""
    (block,) = toml("scaling.md")
    file = tmp_path / "scaling.toml"
    file.write_text(block)
    assert set(ScalingSettings.load(file).pipelines) == {"flights"}


def test_the_query_of_an_ops_log_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a table as agents write it, with the columns that the page lists."""
    ((_, query),) = [block for block in blocks(ROOT / "docs" / "how-to" / "ops-log.md") if block[0] == "sql"]
    monkeypatch.setattr(ops_writer, "_LAST_S", 60.0)
    counts = OpsCounts()
    counts.wrote("home", "/lake", {"x": Written(5, 1, 2_000_000)})
    counts.failed("home", ("x", "y"), "read-only")
    with ops_writer.written(OpsSettings(table=str(tmp_path / "ops")), counts, {"agent": "one"}):
        pass
    engine = QueryBuilder().register("ops", DeltaTable(str(tmp_path / "ops")))
    found = pa.table(engine.execute(query).read_all()).to_pylist()
    assert [tuple(row.values())[:5] for row in found] == [("x", 5, 2.0, 1, 1), ("y", 0, 0.0, 0, 1)]
    text = (ROOT / "docs" / "how-to" / "ops-log.md").read_text(encoding="utf-8")
    listed = [name for line in text.splitlines() if line.startswith("| `") for name in re.findall("`([a-z_]+)`", line)]
    assert set(SCHEMA.names) <= set(listed)


def options(heading: str) -> list[tuple[str, str]]:
    """The options of a table, with the column of their defaults."""
    text = (ROOT / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    return [(name, row[2].strip()) for row in rows for name in re.findall(r"`([^`]+)`", row[1])]


@pytest.mark.parametrize(("heading", "known"), [("kafka-group", SOURCE), ("delta-exactly-once", SINK)])
def test_the_page_on_options_has_each_of_them(heading: str, known: frozenset[str]) -> None:
    """And none that there is not."""
    named = {name.lower() for name, _ in options(heading)}
    prefixes = ("kafka.", "storage.", "schema.registry.", "tableproperty.")
    assert {name for name in named if not name.startswith(prefixes)} == known


@IN_THE_CHECKOUT
def test_every_file_that_a_page_names_is_there() -> None:
    """Files move, and the pages that send readers to them stay."""
    folders = "assignors|broker|deploy|docker|docs|producer|requirements|spark_sink|tests"
    pages = [*PAGES, *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING"))]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    named = {path for text in texts for path in re.findall(rf"`((?:{folders})/[\w./*-]+)", text)}
    assert len(named) > 20
    assert [path for path in named if not any(ROOT.glob(path.rstrip("/")))] == []


@IN_THE_CHECKOUT
def test_the_map_has_each_class_of_the_broker() -> None:
    """ARCHITECTURE.md is where a reader of the Java code begins."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("### `broker/`")[1].split("\n## ")[0]
    classes = {file.stem for file in (ROOT / "broker" / "src" / "main").rglob("*.java")}
    others = {"ShuffledCooperativeAssignor"}  # as its line says: "and three others"
    named = set(re.findall(r"`([A-Z]\w+)`", text))
    assert (classes - named - others, named - classes) == (set(), set())


# Without minOffsetsPerTrigger there is no maxTriggerDelay.
SOURCE_NEEDS = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t", "minOffsetsPerTrigger": "1"}
SINK_NEEDS = {"path": "/lake", "checkpointLocation": "/checkpoint"}


@pytest.mark.parametrize(
    ("heading", "parse", "needed", "number"),
    [
        ("kafka-group", SourceOptions.parse, SOURCE_NEEDS, 17),
        ("delta-exactly-once", SinkOptions.parse, SINK_NEEDS, 5),
    ],
)
def test_an_option_with_its_default_changes_nothing(
    heading: str, parse: Any, needed: dict[str, str], number: int
) -> None:
    """Each default that is a value, such as `earliest` or 100."""
    needed = {**needed, "kafka.group.id": "g"}
    checked = []
    for name, default in options(heading):
        value = re.match(r"`([a-z]+|\d+[a-z]?)`|(\d[\d.]*|false)$", default)
        if value and not name.startswith("ending"):  # a stream has no end
            assert parse({**needed, name: value[1] or value[2]}) == parse(needed), name
            checked.append(name)
    assert len(checked) >= number


def test_the_metrics_of_the_pages_are_exported() -> None:
    """With the suffix that Prometheus gives to counters: without it a query finds nothing."""
    registry = CollectorRegistry()
    for made in (Metrics, QueryMetrics, JobMetrics):
        made(registry)
    families = [*registry.collect(), *StatusCollector(lambda: STATUS).collect(), *ScalingFigures(30.0).collect()]
    families += TrafficCollector({}).collect()
    exported = {f"{one.name}_total" if one.type == "counter" else one.name for one in families}
    kinds = "|".join({name.split("_")[1] for name in exported})
    found = {name for page in PAGES for name in re.findall(rf"\bazimuth_(?:{kinds})_\w+\b", page.read_text("utf-8"))}
    assert len(found) > 10
    assert found <= exported


def test_the_page_on_checks_lists_each_line() -> None:
    """A reader looks there for what a fault on the line means."""
    code = "".join(file.read_text(encoding="utf-8") for file in Path(spark_sink.__file__).parent.rglob("*check*.py"))
    text = (ROOT / "docs" / "how-to" / "check.md").read_text(encoding="utf-8")
    lines = set(re.findall(r'subject=f?"(?:\{\w+\} ?)?([a-z ]+)"', code))
    assert lines == set(re.findall(r"^\| `([a-z ]+)` \|", text, re.MULTILINE))
