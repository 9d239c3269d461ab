"""Commands with the address of an Iceberg table: each works, or says in one sentence that it does not."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from spark_sink.cli import main
from spark_sink.errors import OptionError
from spark_sink.formats.bad_values_quarantined import SCHEMA as QUARANTINE_SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.kafka.group_lag import by_topic
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.table_contract import Change, Quarantined
from spark_sink.ranges.batch_offset import TopicPartition
from tests.table_kinds import ADDRESS, SCHEMA, iceberg_file, warehouse

KEY = TopicPartition("t", 0)
FLEET = """
name = "f"
agent = "a"
table = "{table}"
[sources.one]
bootstrap_servers = "localhost:1"
topics = ["t"]
{more}
"""


class Done(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def azimuth(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Done]:
    """Runs a command, with the options of the catalog where the command reads a table."""

    def run(*arguments: str, catalog: bool = True) -> Done:
        storage = [f"--storage=catalog.warehouse={tmp_path / 'warehouse'}"] if catalog else []
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *storage])
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return run


def _written(root: Path, offsets: list[int], *, bad: list[int] | None = None, end: int = 6) -> None:
    """Write rows by one commit, and name bad rows that the quarantine does not have yet."""
    table = IcebergTable(ADDRESS, "g", warehouse(root))
    table.create(SCHEMA)
    snapshot = table.refresh()
    assert snapshot is not None
    files = [iceberg_file(root, KEY, [one]) for one in offsets]
    named = Quarantined(files=[iceberg_file(root, KEY, bad)], ends={KEY: end}) if bad else None
    change = Change(files=files, positions={KEY: end}, beginnings={KEY: 0}, schema=SCHEMA, quarantined=named)
    table.swap(snapshot, change)


@pytest.mark.parametrize("name", [ADDRESS, "lake.raw.events"], ids=["address", "name"])
@pytest.mark.parametrize(
    ("offsets", "bad", "code", "says"),
    [
        ([0, 1, 2, 3, 4, 5], None, 0, "6 rows in 1 partitions, 0 duplicates, 0 missing"),
        ([1, 2, 2, 5], None, 1, "t/0: 3 missing: 0, 3-4\nt/0: 1 double: 2\n"),
        ([0, 1, 4, 5], [2, 3], 0, "4 rows in 1 partitions, 0 duplicates, 0 missing"),
    ],
    ids=["whole", "holes and doubles", "bad rows that only the table names"],
)
def test_verify_finds_holes_and_doubles(  # noqa: PLR0913, PLR0917 -- a table of cases
    azimuth: Callable[..., Done],
    tmp_path: Path,
    name: str,
    offsets: list[int],
    bad: list[int] | None,
    code: int,
    says: str,
) -> None:
    """As for Delta tables: exit code 1 for a finding, with the offsets by name."""
    _written(tmp_path, offsets, bad=bad)
    done = azimuth("verify", name)
    assert (done.code, done.err) == (code, "")
    assert says in done.out
    assert ("`azimuth repair iceberg://lake.raw.events` removes" in done.out) == ("double" in says)


def test_verify_counts_the_rows_of_the_quarantine(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """A bad record is not missing: it is in the other table."""
    _written(tmp_path, [0, 1, 3, 4, 5])
    assert azimuth("verify", ADDRESS).code == 1
    quarantine = IcebergTable(quarantine_of(ADDRESS), "g", warehouse(tmp_path))
    quarantine.create(QUARANTINE_SCHEMA)
    snapshot = quarantine.refresh()
    assert snapshot is not None
    landing = quarantine.landing(QUARANTINE_SCHEMA)
    row = {"topic": KEY.topic, "partition": KEY.partition, "offset": 2}
    landing.write(pa.RecordBatch.from_pylist([row], schema=QUARANTINE_SCHEMA))
    change = Change(files=landing.close(), positions={KEY: 6}, beginnings={}, schema=QUARANTINE_SCHEMA)
    quarantine.swap(snapshot, change)
    assert azimuth("verify", ADDRESS).code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["verify", "iceberg://lake.raw.none"], "iceberg://lake.raw.none: there is no Iceberg table"),
        (["verify", ADDRESS, "--group", "other"], "lake.raw.events: group 'other' has written nothing here"),
        (["verify", "iceberg://x"], "is not the name of an Iceberg table"),
        (
            ["lag", "--group=g", "--bootstrap-servers=localhost:1", "--table=iceberg://{topic}.raw.events"],
            "{topic} or {cluster} cannot stand for the catalog; name the catalog",
        ),
        (
            ["lag", "--group=g", "--bootstrap-servers=localhost:1", "--table=iceberg://lake.none.{topic}"],
            "iceberg://lake.none.{topic}: it holds no position of group 'g'; check --table and --group",
        ),
        (["rewind", "lake.raw.none"], "iceberg://lake.raw.none: there is no Iceberg table"),
        (["rewind", quarantine_of(ADDRESS)], "is the quarantine of iceberg://lake.raw.events"),
        (["rewind", ADDRESS, "--group", "other"], "group 'other' has written nothing here"),
        (["repair", "iceberg://lake.raw.none"], "lake.raw.none: there is no Iceberg table"),
        (["repair", quarantine_of(ADDRESS)], "is the quarantine of iceberg://lake.raw.events"),
        (["quarantine", "list", "iceberg://lake.raw.none"], "there is no Iceberg table"),
        (["quarantine", "show", quarantine_of(ADDRESS)], "is the quarantine of iceberg://lake.raw.events"),
        (["verify", ADDRESS, "--group", "other"], "group 'other' has written nothing here"),
        (["quarantine", "replay", ADDRESS, "--group", "other"], "group 'other' has written nothing here"),
        (
            ["claims", "run", "--group=g", f"--table={ADDRESS}", "--database=sqlite://", "--bootstrap-servers=x:1"],
            "is an Iceberg table; set table_format=iceberg",
        ),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_what_is_not_supported_is_one_sentence(
    azimuth: Callable[..., Done], tmp_path: Path, arguments: list[str], says: str
) -> None:
    """It does not say that there is no Delta table, which would send the user to look for one."""
    _written(tmp_path, [0, 1, 2, 3, 4, 5])
    done = azimuth(*arguments)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert says in done.err
    assert "no Delta table" not in done.err


@pytest.mark.parametrize(
    ("table", "more", "says"),
    [
        (ADDRESS, "", "is an Iceberg table; set table_format=iceberg"),
        (
            "lake.raw.events",
            '[storage]\n"catalog.warehouse" = "/lake"',
            "is an Iceberg table; set table_format=iceberg",
        ),
        ("/lake", '[catalog]\nwarehouse = "/lake"', "is a Delta table, which has no catalog"),
        ("events", 'table_format = "iceberg"', "is not the name of an Iceberg table, need catalog.namespace.table"),
        ("{cluster}.raw.events", 'table_format = "iceberg"', "cannot stand for the catalog"),
        ("lake.raw.x_quarantine", 'table_format = "iceberg"', "give the table a name that does not end in _quarantine"),
        (
            "lake.raw.x",
            'table_format = "iceberg"\npartition_by = "hour(timestamp)"',
            "'hour(timestamp)', need a column, day(column) or bucket(N, column), by commas",
        ),
    ],
    ids=lambda value: value.partition("\n")[0],
)
def test_an_agent_of_a_fleet_names_the_setting_that_does_not_fit(
    azimuth: Callable[..., Done], tmp_path: Path, table: str, more: str, says: str
) -> None:
    """Its check must not say that the table is new, and the agent would fail at its first commit."""
    config = tmp_path / "fleet.toml"
    given = FLEET.format(table=table, more=more if more.startswith("[") else "")
    config.write_text(given if more.startswith("[") else f"{more}\n{given}")
    done = azimuth("agent", "--config", str(config), "--check", catalog=False)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert says in done.err


def _fleet_file(folder: Path) -> Path:
    """Write the settings of the fleet whose group is g, with the options of its catalog."""
    config = folder / "fleet.toml"
    more = f'[catalog]\nwarehouse = "{folder / "warehouse"}"'
    given = FLEET.format(table="lake.raw.{topic}", more=more).replace('name = "f"', 'name = "g"')
    config.write_text(f'table_format = "iceberg"\n{given}')
    return config


def test_commands_find_the_tables_of_a_fleet(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """By the fleet's own file, with the options of its catalog in it."""
    _written(tmp_path, [0, 1, 2, 3, 4, 5])
    done = azimuth("verify", "--fleet", str(_fleet_file(tmp_path)), catalog=False)
    assert (done.code, done.err) == (0, "")
    assert "6 rows" in done.out


def test_verify_takes_a_name_with_a_placeholder(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """The quarantine beside a table is no table of its own."""
    _written(tmp_path, [0, 1, 2, 3, 4, 5])
    IcebergTable(quarantine_of(ADDRESS), "g", warehouse(tmp_path)).create(QUARANTINE_SCHEMA)
    done = azimuth("verify", "iceberg://lake.raw.{topic}")
    assert (done.code, done.err) == (0, "")
    assert "6 rows in 1 partitions" in done.out


@pytest.mark.parametrize("by", ["table", "fleet"])
def test_lag_takes_a_name_with_a_placeholder(
    azimuth: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """The first part of the name is a catalog, and no bucket, which cannot be listed."""
    table = IcebergTable("iceberg://lake.raw.t", "g", warehouse(tmp_path))
    table.create(SCHEMA)
    snapshot = table.refresh()
    assert snapshot is not None
    table.swap(snapshot, Change(files=[], positions={KEY: 6}, beginnings={KEY: 0}, schema=SCHEMA))
    monkeypatch.setattr("spark_sink.cli._reachable.reach", lambda _: None)
    monkeypatch.setattr("spark_sink.cli.lag._marked", lambda found, *_: found)
    monkeypatch.setattr(
        "spark_sink.kafka.group_lag.behind",
        lambda _, __, known: by_topic(known, dict.fromkeys(known, 10)),
    )
    if by == "table":
        done = azimuth("lag", "--bootstrap-servers=localhost:1", "--group=g", "--table=lake.raw.{topic}")
    else:
        done = azimuth("lag", "--fleet", str(_fleet_file(tmp_path)), catalog=False)
    assert (done.code, done.err) == (0, "")
    assert "4  t  (1 partition, most in 0: 4)" in done.out


@pytest.mark.parametrize(
    "command",
    [
        ["verify"],
        ["rewind"],
        ["repair"],
        ["quarantine", "list"],
        ["lag", "--group=g", "--bootstrap-servers=localhost:1", "--table"],
    ],
    ids=" ".join,
)
def test_a_look_into_a_misspelled_warehouse_makes_no_catalog(
    azimuth: Callable[..., Done], tmp_path: Path, command: list[str]
) -> None:
    """An empty database would stay there, and a writer with the same mistake would take it for its catalog."""
    assert azimuth(*command, ADDRESS).code == 2
    assert not (tmp_path / "warehouse").exists()


def test_an_empty_warehouse_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a variable of the shell that is not set; the current folder would become the warehouse."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=r"catalog\.warehouse is empty"):
        open_stored(ADDRESS, {"catalog.warehouse": ""})
    assert not list(tmp_path.iterdir())
