"""Checkpoints that two tables must not share."""

import json
from pathlib import Path

import pytest

from spark_sink.agent.checkpoint_of_table import bind_checkpoint
from spark_sink.errors import OptionError
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
