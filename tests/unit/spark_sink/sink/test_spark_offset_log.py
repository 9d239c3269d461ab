"""Ranges of a batch, from Spark's offset log."""

import json
from pathlib import Path

import pytest

from spark_sink.errors import OffsetError
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.spark_offset_log import batch_offset, parse_offset_log

META = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'
ONE = Offset.of([Range("t", 0, 3, 9, 4)])
OTHER = Offset.of([Range("t", 1, 2, 5, 4)])
WITH_ALL, WITH_NONE = (json.dumps(one.value_of("t in group 'g'")) for one in (ONE, Offset()))


def test_the_offset_of_a_batch_is_found(tmp_path: Path) -> None:
    """As Spark 4.2 writes it; the address may be a path or a file: address."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text(f"v1\n{META}\n{ONE.json()}")
    assert batch_offset(str(tmp_path), 7) == batch_offset(f"file://{tmp_path}", 7) == ONE


@pytest.mark.parametrize("name", ["a%20b", "a b", "a#b?c", "ünï"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_the_folder_of_the_checkpoint_is_the_one_of_spark(tmp_path: Path, name: str, scheme: str) -> None:
    """Spark decodes nothing in an address; the folder of the decoded name may be the checkpoint of another query."""
    for folder in ("a b", "a", name):
        (tmp_path / folder / "offsets").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "offsets" / "7").write_text(f"v1\n{META}\n{Offset().json()}")
    (tmp_path / name / "offsets" / "7").write_text(f"v1\n{META}\n{ONE.json()}")
    assert batch_offset(f"{scheme}{tmp_path}/{name}", 7) == ONE


def test_several_sources_are_joined_and_strangers_passed_over() -> None:
    """A union of two readers, with a source of another kind and one without an offset yet."""
    two = Offset.of([Range("u", 1, 0, 5)])
    text = f'v1\n{META}\n{ONE.json()}\n-\n{{"logOffset":3}}\n17\n{two.json()}'
    assert parse_offset_log(text, "here") == Offset.of([*ONE, *two])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "version ''"),
        (f"v9\n{META}\n{ONE.json()}", "version 'v9'"),
        (f'v1\n{META}\n{{"logOffset":3}}', "no source of this query is kafka-group"),
        (f"v1\n{META}\n{ONE.json()}\n{ONE.json()}", "2 sources of this query read the topic 't'"),
        (f"v1\n{META}\n{ONE.json()}\n{OTHER.json()}", "2 sources of this query read the topic 't'"),
        (f"v1\n{META}\n{WITH_ALL}\n{WITH_NONE}", "2 sources of this query read t in group 'g'"),
    ],
    ids=[
        "empty",
        "newer",
        "another source",
        "two readers of one partition",
        "two readers that share a topic",
        "a reader without a partition",
    ],
)
def test_what_holds_no_offset_is_refused(text: str, says: str) -> None:
    """Without the ranges a gap looks like a hole, so nothing may be committed."""
    with pytest.raises(OffsetError, match=says):
        parse_offset_log(text, "here")


def test_a_checkpoint_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    """The file was removed while the query ran."""
    with pytest.raises(OffsetError, match="was the checkpoint deleted"):
        batch_offset(str(tmp_path), 7)
