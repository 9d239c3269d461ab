"""A data file that cannot be read: each command that reads the table names it, so that a person can restore it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from spark_sink.cli import main
from spark_sink.lake.vacuumed_files import with_way_out
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.table_kinds import ADDRESS, SCHEMA, kind_of, warehouse

A = TopicPartition("a", 0)
ROWS = 300


def _without_head(data: bytes) -> bytes:
    quarter = len(data) // 4
    return data[:4] + bytes(255 - one for one in data[4:quarter]) + data[quarter:]


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "truncated": lambda file: os.truncate(file, file.stat().st_size // 2),
    "garbage": lambda file: file.write_bytes(b"\x5a" * file.stat().st_size),
    "garbage in its pages": lambda file: file.write_bytes(_without_head(file.read_bytes())),
}


def _damaged(format_: str, root: Path, damage: str) -> Path:
    """Make a table of three files, and damage one."""
    kind = kind_of(format_, root)
    table = kind.make()
    table.create(SCHEMA)
    for begin in range(0, 3 * ROWS, ROWS):
        offset = Offset.of([Range("a", 0, begin, begin + ROWS)])
        commit(table, Batch(offset=offset, files=[kind.write(A, range(begin, begin + ROWS))], schema=SCHEMA))
    file = sorted(root.rglob("part-*.parquet"))[1]
    DAMAGES[damage](file)
    return file


@pytest.mark.parametrize("command", [["verify"], ["repair", "--dry-run"]], ids=lambda words: words[0])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str, damage: str, command: list[str]
) -> None:
    """Of thousands of files one must be put back from a backup; only a file that is gone may be VACUUM's."""
    file = _damaged(format_, tmp_path, damage)
    place = [str(tmp_path / "table")]
    if format_ == "iceberg":
        place = [ADDRESS, *(f"--storage={name}={value}" for name, value in warehouse(tmp_path).items())]
    with pytest.raises(SystemExit) as ended:
        main([*command, *place])
    said = capsys.readouterr().err
    assert (ended.value.code, file.name in said) == (2, True), said
    assert damage == "missing" or "VACUUM" not in said


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Object at location /lake/part-1.parquet not found", True),
        ("Parquet magic bytes not found in footer", False),
    ],
)
def test_only_a_file_that_is_gone_gets_the_hint_of_vacuum(text: str, *, hint: bool) -> None:
    """Arrow says of a damaged file that some bytes are not found, and another reading does not help."""
    assert (with_way_out(text) != text) == hint
