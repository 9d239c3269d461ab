"""`azimuth sink --check` reads Iceberg tables: one sentence for each fault, and nothing is created."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ServiceUnavailableError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.sink_checks import planned_checks
from spark_sink.checks import ANSWER_S, Finding, State, check_table, run
from spark_sink.fetch.raw_columns import arrow_schema
from tests.table_kinds import catalog

COLUMNS = arrow_schema(headers=False)


def _asked(root: Path, more: Mapping[str, object], answer_s: float = ANSWER_S) -> Finding:
    """Ask what `--check` asks about the table of an agent, or its start."""
    settings = AgentSettings.model_validate(
        {
            "bootstrap_servers": "127.0.0.1:1",
            "group": "g",
            "table": "lake.raw.events",
            "table_format": "iceberg",
            "catalog": {"warehouse": str(root / "warehouse")},
            "checkpoint": str(root / "checkpoint"),
            "subscribe": "t",
            "agent": "a",
            **more,
        }
    )
    (found,) = run([one for one in planned_checks(settings, answer_s) if one.subject == "table"], limit_s=90)
    return found


def _create(root: Path, columns: pa.Schema | Schema) -> None:
    catalog(root).create_namespace_if_not_exists("raw")
    catalog(root).create_table("raw.events", columns)


def test_a_table_that_fits_exists(tmp_path: Path) -> None:
    """The start need not be tried to learn it."""
    _create(tmp_path, COLUMNS)
    found = _asked(tmp_path, {})
    assert (found.state, found.text) == (State.OK, "iceberg://lake.raw.events: exists")


def test_a_table_of_a_new_catalog_is_new_and_nothing_is_created(tmp_path: Path) -> None:
    """To open such a catalog would create its folder and its database."""
    found = _asked(tmp_path, {})
    assert found.state is State.OK
    assert found.text == "iceberg://lake.raw.events: new; the first commit creates it"
    assert not list(tmp_path.iterdir())


def test_each_table_of_the_routes_is_looked_up_in_the_catalog(tmp_path: Path) -> None:
    """A catalog that exists may lack some of the tables."""
    _create(tmp_path, COLUMNS)
    found = _asked(tmp_path, {"sink": {"routes": '{"t.*": "lake.raw.other"}'}})
    assert found.text == "iceberg://lake.raw.events: exists; iceberg://lake.raw.other: new; the first commit creates it"


@pytest.mark.parametrize(
    ("columns", "more", "says"),
    [
        (
            COLUMNS.set(COLUMNS.get_field_index("partition"), pa.field("partition", pa.string())),
            {},
            "iceberg://lake.raw.events: column 'partition' is string in the table and int32 in the query; cast it",
        ),
        (
            pa.schema([one for one in COLUMNS if one.name != "value"]),
            {},
            "iceberg://lake.raw.events: the table has no column 'value' (binary); option mergeSchema=true adds it, or",
        ),
        (
            Schema(NestedField(1, "timestamp", LongType(), required=True)),
            {},
            "lake.raw.events: column 'timestamp' is required, and rows may have no value; make it optional",
        ),
        (
            COLUMNS,
            {"catalog": {"type": "rest", "uri": "http://127.0.0.1:1"}},
            "catalog 'lake' cannot be opened: ConnectionError",
        ),
        (COLUMNS, {"catalog": {"type": "unknown"}}, "pyiceberg knows no catalog with type; give catalog.warehouse="),
        (
            COLUMNS,
            {"catalog": {"warehouse": "/proc/azimuth"}},
            "/proc/azimuth: files cannot be written there: ",
        ),
    ],
    ids=["type", "lacking column", "required column", "catalog away", "unknown catalog", "folder not writable"],
)
def test_each_fault_is_one_sentence(
    tmp_path: Path, columns: pa.Schema | Schema, more: dict[str, object], says: str
) -> None:
    """It names the table or the catalog, and what to do; a catalog that is away is asked once, within the limit."""
    _create(tmp_path, columns)
    found = _asked(tmp_path, more)
    assert found.state is State.FAULT
    assert says in found.text
    assert "OptionError" not in found.text


@pytest.mark.parametrize(("answer_s", "state"), [(ANSWER_S, State.FAULT), (15.0, State.OK)], ids=["--check", "start"])
def test_a_catalog_that_fails_for_a_moment_ends_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer_s: float, state: State
) -> None:
    """An agent has the time to ask again; a check names the error instead."""
    _create(tmp_path, COLUMNS)
    load, errors = SqlCatalog.load_table, iter([ServiceUnavailableError("restarting")])

    def failing(self: SqlCatalog, name: str | tuple[str, ...]) -> Table:
        if (error := next(errors, None)) is not None:
            raise error
        return load(self, name)

    monkeypatch.setattr(SqlCatalog, "load_table", failing)
    found = _asked(tmp_path, {}, answer_s)
    assert found.state is state
    assert ("restarting" in found.text) == (state is State.FAULT)


def test_columns_that_are_added_are_no_fault(tmp_path: Path) -> None:
    """With mergeSchema, the first commit adds them."""
    _create(tmp_path, pa.schema([one for one in COLUMNS if one.name != "value"]))
    assert _asked(tmp_path, {"sink": {"mergeSchema": "true"}}).state is State.OK


def test_a_name_of_a_catalog_without_options_is_said_to_be_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without options of a catalog such a name is valid, and the user may have meant an Iceberg table."""
    monkeypatch.chdir(tmp_path)
    said = check_table("lake.raw.events", "g", {}, COLUMNS)
    assert said.endswith("new; the first commit creates it as a Delta table in this folder, not in an Iceberg catalog")
    (tmp_path / "lake.raw.events").mkdir()
    assert check_table("lake.raw.events", "g", {}, COLUMNS).endswith("new; the first commit creates it")


def test_names_of_a_catalog_by_topic_are_said_to_be_folders_until_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with the name of one table: the topics' tables would be in the folder of the process."""
    monkeypatch.chdir(tmp_path)
    said = check_table("lake.raw.{topic}", "g", {}, COLUMNS)
    assert said == (
        "lake.raw.{topic}: 0 tables; new ones are Delta tables in folders of such names, not in an Iceberg catalog"
    )
    write_deltalake("lake.raw.orders", COLUMNS.empty_table())
    assert check_table("lake.raw.{topic}", "g", {}, COLUMNS) == "lake.raw.{topic}: 1 tables"
