"""Checkpoints that two tables must not share."""

import json
from pathlib import Path

import pytest

from spark_sink.agent.checkpoint_of_table import bind_checkpoint, refuse_damaged
from spark_sink.errors import OptionError
from spark_sink.ranges.batch_offset import Offset, Range
from tests.unit.spark_sink.agent.test_agent_name_lock import settings


def test_a_checkpoint_belongs_to_one_table(tmp_path: Path) -> None:
    """Its offsets would count as read for the other table, which has none of the rows."""
    bind_checkpoint(settings(tmp_path))
    bind_checkpoint(settings(tmp_path))
    with pytest.raises(OptionError, match=rf"is of the table {tmp_path}/table, not of {tmp_path}/other:"):
        bind_checkpoint(settings(tmp_path, table=str(tmp_path / "other")))


def test_a_binding_is_in_the_folder_that_spark_makes(tmp_path: Path) -> None:
    """Spark decodes nothing in an address: beside a decoded folder, two tables could share one checkpoint unseen."""
    bind_checkpoint(settings(tmp_path, checkpoint=f"file://{tmp_path}/a%20b"))
    assert (tmp_path / "a%20b" / "azimuth-table.json").exists()


@pytest.mark.parametrize("text", ["", '{"table": "/ta'])
def test_a_binding_that_was_cut_off_is_written_again(tmp_path: Path, text: str) -> None:
    """An agent that died while it wrote it must be able to start again."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "azimuth-table.json").write_text(text)
    bind_checkpoint(settings(tmp_path))
    with pytest.raises(OptionError, match="is of the table"):
        bind_checkpoint(settings(tmp_path, table=str(tmp_path / "other")))


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"table": 1}'])
def test_a_binding_without_a_table_is_refused(tmp_path: Path, text: str) -> None:
    """One sentence, and nothing is written."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "azimuth-table.json").write_text(text)
    with pytest.raises(OptionError, match="it names no table"):
        bind_checkpoint(settings(tmp_path))


def test_the_address_is_compared_and_not_its_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path from another working directory is another table."""
    monkeypatch.chdir(tmp_path)
    bind_checkpoint(settings(tmp_path, table="table"))
    bind_checkpoint(settings(tmp_path, table=f"file://{tmp_path}/table"))
    assert json.loads((tmp_path / "checkpoint" / "azimuth-table.json").read_text()) == {"table": f"{tmp_path}/table"}


OFFSET = Offset.of([Range("t", 0, 0, 5)]).json()
FILES = {  # as Spark 4 writes them
    "metadata": '{"id":"5f9c"}',
    "offsets/9": f'v1\n{{"batchWatermarkMs":0}}\n{OFFSET}',
    "offsets/10": f'v1\n{{"batchWatermarkMs":0}}\n{OFFSET}',
    "commits/9": 'v1\n{"nextBatchWatermarkMs":0}',
}


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("left", ["", "v", "half"])
def test_a_checkpoint_with_a_damaged_file_is_refused_with_its_name(tmp_path: Path, path: str, left: str) -> None:
    """A full disk or a copy may cut it off; Spark's own sentence says only `Unexpected end-of-input`."""
    refuse_damaged(settings(tmp_path))  # there is none yet
    for one, text in FILES.items():
        (tmp_path / "checkpoint" / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkpoint" / one).write_text(text)
    (tmp_path / "checkpoint" / "offsets" / ".10.crc").write_bytes(b"crc")
    refuse_damaged(settings(tmp_path))
    (tmp_path / "checkpoint" / path).write_text(FILES[path][:-4] if left == "half" else left)
    with pytest.raises(OptionError, match=rf"its file {path} is damaged; delete the whole folder, or name another"):
        refuse_damaged(settings(tmp_path))
