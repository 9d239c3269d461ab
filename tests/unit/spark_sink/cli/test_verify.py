"""`azimuth verify`: exit codes and words."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import FileSystem

from spark_sink.cli import main
from spark_sink.formats.bad_values_quarantined import SCHEMA as QUARANTINE
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit

SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])


def _table(path: Path, offsets: list[int], group: str = "g") -> str:
    landing = Landing(filesystem(str(path), make=True), SCHEMA)
    landing.write(
        pa.RecordBatch.from_pylist([{"topic": "t", "partition": 0, "offset": one} for one in offsets], schema=SCHEMA)
    )
    batch = Batch(offset=Offset.of([Range("t", 0, 0, 6)]), files=landing.close(), schema=SCHEMA)
    commit(DeltaLakeTable(str(path), group), batch)
    return str(path)


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def azimuth(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs a command as the entry point does."""

    def run(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return run


@pytest.mark.parametrize(
    ("offsets", "code", "says"),
    [
        ([0, 1, 2, 3, 4, 5], 0, "6 rows in 1 partitions, 0 duplicates, 0 missing"),
        ([1, 2, 2, 5], 1, "t/0: 3 missing: 0, 3-4\nt/0: 1 double: 2\n"),
    ],
    ids=["whole", "holes and doubles"],
)
def test_the_exit_code_is_the_answer(
    azimuth: Callable[..., Done], tmp_path: Path, offsets: list[int], code: int, says: str
) -> None:
    """0 for a whole table, 1 for a finding, with the offsets by name."""
    done = azimuth("verify", _table(tmp_path, offsets))
    assert (done.returncode, done.stderr) == (code, "")
    assert says in done.stdout


def test_what_looks_missing_and_never_was_there_is_mentioned(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """The end of a transaction takes an offset; users should know this before they search for missing records."""
    assert "the end of a transaction" in azimuth("verify", _table(tmp_path / "holes", [0, 1, 4])).stdout
    assert "transaction" not in azimuth("verify", _table(tmp_path / "whole", [0, 1, 2, 3, 4, 5])).stdout


def test_missing_rows_of_a_restored_table_name_the_command_that_has_them_read_again(
    azimuth: Callable[..., Done], tmp_path: Path
) -> None:
    """`azimuth lag` says 0 for it, and nothing else points to the RESTORE before an agent runs."""
    DeltaLakeTable(str(tmp_path / "t"), "g").create(SCHEMA)
    table = _table(tmp_path / "t", [0, 1, 2, 3, 4, 5])
    DeltaTable(table).restore(0)
    done = azimuth("verify", table)
    assert done.returncode == 1
    assert f"`azimuth rewind {table}` shows where" in done.stdout


def test_json_names_the_runs(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """For other programs; runs are [first, end)."""
    done = azimuth("verify", _table(tmp_path, [0, 1, 4, 4, 5]), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["rows"], found["duplicates"], found["missing"]) == (1, 5, 1, 2)
    assert found["findings"][0]["missing"] == [[2, 4]]
    assert found["findings"][0]["duplicates"] == [[4, 5]]


def test_what_cannot_be_checked_is_one_sentence_and_two(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """No table, an unknown group, a malformed option: no traceback."""
    table = _table(tmp_path, [0, 1, 2, 3, 4, 5])
    for arguments in (["/none"], [table, "--group", "other"], [table, "--storage", "x"]):
        done = azimuth("verify", *arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_doubles_name_the_command_that_removes_them(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """First the rows that it would remove, then the repair, and then the table is whole."""
    table = _table(tmp_path, [0, 1, 2, 2, 3, 4, 5])
    assert "--within-files removes them, too" in (kept := azimuth("repair", table)).stdout
    assert kept.returncode == 1
    assert f"`azimuth repair {table}` removes" in azimuth("verify", table).stdout
    shown = azimuth("repair", table, "--dry-run", "--within-files")
    assert (shown.returncode, shown.stdout.count("\n")) == (0, 2)
    assert f"{table}: 1 double rows would be removed" in shown.stdout
    assert json.loads(azimuth("repair", table, "--json", "--within-files").stdout)[0]["rows"] == 1
    assert azimuth("verify", table).returncode == 0
    assert f"{table}: 0 double rows were removed" in azimuth("repair", table).stdout
    assert azimuth("repair", "/none").stderr == "azimuth: /none: there is no Delta table\n"


@pytest.mark.parametrize("command", ["verify", "repair", "rewind", "quarantine list"])
@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("foo://b/t", "foo://b/t: no object store has this scheme; an address begins with s3://"),
        ("s3://b b/t", "s3://b b/t: is not an address: "),
        ("abfss://c/t", "Account must be specified"),
        ("viewfs://c/t", "No viewfs fallback mount found"),
        ("hf://t", "repo_id is empty"),
        ("lakefs://a/b/c", "LakeFS endpoint is missing"),
    ],
)
def test_an_address_that_cannot_be_opened_is_one_sentence(
    azimuth: Callable[..., Done], command: str, address: str, says: str
) -> None:
    """delta-rs raises three kinds of errors, and one of them also where there is no table."""
    done = azimuth(*command.split(), address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"azimuth: {address}")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["verify", "repair", "rewind", "quarantine list"])
def test_the_name_of_an_iceberg_table_alone_gets_its_address(azimuth: Callable[..., Done], command: str) -> None:
    """Settings have `table = "lake.raw.flights"`, so this is what a person tries first."""
    said = azimuth(*command.split(), "lake.raw.flights").stderr
    assert "there is no Delta table; an Iceberg table has the address iceberg://lake.raw.flights, or options of" in said


def test_doubles_in_the_quarantine_are_named(azimuth: Callable[..., Done], tmp_path: Path) -> None:
    """They count like those of the table, for the exit code, too."""
    table = _table(tmp_path / "t", [0, 1, 2, 4, 5])
    bad = pa.Table.from_pylist([{"topic": "t", "partition": 0, "offset": 3}] * 2, schema=QUARANTINE)
    write_deltalake(quarantine_of(table), bad)
    done = azimuth("verify", table)
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "t/0: 1 double in the quarantine: 3")
    assert f"{table}: 5 rows in 1 partitions, 1 duplicates, 0 missing" in done.stdout
    found = json.loads(azimuth("verify", table, "--json").stdout)
    assert (found["duplicates"], found["findings"][0]["quarantine_duplicates"]) == (1, [[3, 4]])


FLEET = """
name = "g"
table = "{root}/{{cluster}}/{{topic}}"
[sources.eu]
bootstrap_servers = "localhost:1"
topics = ["t", "u"]
[sources.us]
bootstrap_servers = "localhost:2"
topics = ["t"]
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two whole tables, and one with a hole and a double row."""
    _table(tmp_path / "eu" / "t", [0, 1, 2, 3, 4, 5])
    _table(tmp_path / "eu" / "u", [0, 1, 2, 3, 4, 5])
    _table(tmp_path / "us" / "t", [0, 1, 2, 2, 4, 5])
    (tmp_path / "fleet.toml").write_text(FLEET.format(root=tmp_path))
    return tmp_path


def test_an_address_with_placeholders_checks_every_table(azimuth: Callable[..., Done], lake: Path) -> None:
    """Each table has its lines, the last line has the total, and the worst table decides the exit code."""
    done = azimuth("verify", f"{lake}/{{cluster}}/{{topic}}")
    assert (done.returncode, done.stderr) == (1, "")
    assert f"{lake}/eu/t: 6 rows in 1 partitions, 0 duplicates, 0 missing" in done.stdout
    assert f"{lake}/us/t: 6 rows in 1 partitions, 1 duplicates, 1 missing" in done.stdout
    total = f"{lake}/{{cluster}}/{{topic}}: 18 rows in 3 tables, 1 duplicates, 1 missing"
    assert done.stdout.splitlines()[-1] == total
    assert azimuth("verify", f"{lake}/eu/{{topic}}").returncode == 0


def test_the_file_of_a_fleet_names_its_tables(azimuth: Callable[..., Done], lake: Path) -> None:
    """The file has the address, the group and the options of the store."""
    done = azimuth("verify", "--fleet", f"{lake}/fleet.toml")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "fleet 'g': 18 rows in 3 tables, 1 duplicates, 1 missing"
    found = json.loads(azimuth("verify", "--fleet", f"{lake}/fleet.toml", "--json").stdout)
    assert [one["table"] for one in found] == [f"{lake}/{name}" for name in ("eu/t", "eu/u", "us/t")]


def test_a_table_that_cannot_be_checked_stops_no_other(azimuth: Callable[..., Done], lake: Path) -> None:
    """Its sentence goes to standard error, and the exit code is that of an error."""
    _table(lake / "eu" / "v", [0, 1, 2, 3, 4, 5], group="other")
    done = azimuth("verify", f"{lake}/eu/{{topic}}", "--group", "g")
    assert done.returncode == 2
    assert "eu/v: group 'g' has written nothing here" in done.stderr
    total = f"{lake}/eu/{{topic}}: 12 rows in 2 tables, 0 duplicates, 0 missing, 1 not read"
    assert done.stdout.splitlines()[-1] == total


FLEET_COMMANDS = [
    (("verify",), "18 rows in 3 tables, 1 duplicates, 1 missing"),
    (("repair", "--dry-run", "--within-files"), "1 double rows of 3 tables would be removed"),
    (("quarantine", "list"), "0 records wait in quarantine, of 3 tables"),
    (("quarantine", "show"), "no such record waits in quarantine"),
    (("quarantine", "replay"), "0 records replayed, 0 still wait, of 3 tables"),
]


@pytest.mark.parametrize(("command", "total"), FLEET_COMMANDS)
def test_a_source_of_a_fleet_without_a_table_is_an_error(
    azimuth: Callable[..., Done], lake: Path, command: tuple[str, ...], total: str
) -> None:
    """Its topics would be missing from the total without a word."""
    more = '[sources.asia]\nbootstrap_servers = "localhost:3"\ntopics = ["t"]\n'
    (lake / "fleet.toml").write_text(FLEET.format(root=lake) + more)
    done = azimuth(*command, "--fleet", f"{lake}/fleet.toml")
    assert done.returncode == 2
    assert done.stderr.startswith(f"azimuth: {lake}/asia/{{topic}}: no Delta table matches; check the address")
    assert done.stdout.splitlines()[-1] == f"fleet 'g': {total}, 1 not read"


def test_a_source_whose_store_does_not_answer_stops_no_other(
    azimuth: Callable[..., Done], lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error is among the values, too."""

    def refuse(uri: str, *_: object) -> FileSystem:
        if uri.endswith("us"):
            raise OSError("access denied")
        return filesystem(uri)

    monkeypatch.setattr("spark_sink.lake.matching_tables.filesystem", refuse)
    done = azimuth("verify", "--fleet", f"{lake}/fleet.toml", "--json")
    assert (done.returncode, done.stderr) == (2, "")
    *read, fault = json.loads(done.stdout)
    assert [one["rows"] for one in read] == [6, 6]
    assert fault == {
        "table": f"{lake}/us/{{topic}}",
        "error": f"{lake}/us: its folders cannot be listed: access denied",
    }


@pytest.mark.parametrize(
    ("command", "total"),
    [
        (("verify",), "0 rows in 0 tables, 0 duplicates, 0 missing"),
        (("repair",), "0 double rows of 0 tables were removed"),
        (("quarantine", "list"), "0 records wait in quarantine, of 0 tables"),
        (("quarantine", "replay"), "0 records replayed, 0 still wait, of 0 tables"),
    ],
)
def test_tables_that_cannot_be_read_are_not_in_the_total(
    azimuth: Callable[..., Done], tmp_path: Path, command: tuple[str, ...], total: str
) -> None:
    """Two broken tables would look like two whole ones."""
    for name in ("a", "b"):
        log = tmp_path / name / "_delta_log"
        log.mkdir(parents=True)
        (log / "00000000000000000000.json").write_text("{")
    done = azimuth(*command, f"{tmp_path}/{{topic}}")
    assert (done.returncode, done.stderr.count("azimuth: ")) == (2, 2)
    assert done.stdout.splitlines() == [f"{tmp_path}/{{topic}}: {total}, 2 not read"]


def test_several_tables_are_repaired_with_one_command(azimuth: Callable[..., Done], lake: Path) -> None:
    """Then only the hole is left."""
    shown = azimuth("repair", f"{lake}/{{cluster}}/{{topic}}", "--dry-run", "--within-files")
    assert shown.stdout.splitlines()[-1].endswith("1 double rows of 3 tables would be removed")
    done = azimuth("repair", "--fleet", f"{lake}/fleet.toml", "--within-files")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "fleet 'g': 1 double rows of 3 tables were removed")
    assert "0 duplicates, 1 missing" in azimuth("verify", f"{lake}/us/{{topic}}").stdout


def test_the_quarantines_of_several_tables_are_counted(azimuth: Callable[..., Done], lake: Path) -> None:
    """Tables without waiting records have no line."""
    for command in ("list", "show", "replay"):
        done = azimuth("quarantine", command, f"{lake}/{{cluster}}/{{topic}}")
        assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert azimuth("quarantine", "list", "--fleet", f"{lake}/fleet.toml", "--json").stdout == "[]\n"


@pytest.mark.parametrize("command", [("verify",), ("repair",), ("quarantine", "list"), ("quarantine", "replay")])
def test_an_address_that_matches_nothing_is_one_sentence(
    azimuth: Callable[..., Done], tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A total over no table would look like a whole lake."""
    done = azimuth(*command, f"{tmp_path}/{{topic}}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "no Delta table matches" in done.stderr


def test_a_table_and_a_fleet_are_alternatives(azimuth: Callable[..., Done], lake: Path) -> None:
    """And one of the two is needed."""
    assert azimuth("verify").returncode == 2
    assert azimuth("verify", f"{lake}/eu/t", "--fleet", f"{lake}/fleet.toml").returncode == 2
