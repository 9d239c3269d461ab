"""A message names an option as the user's file or command line does."""

import re
from pathlib import Path

import pytest

from spark_sink.errors import OptionError, SchemaError
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.options import option_spellings
from spark_sink.options.option_spellings import Spelling, respelled, spelled
from spark_sink.ranges.batch_offset import Range
from spark_sink.sink.row_options import RowOptions
from tests.unit.spark_sink.fleet.test_table_writer import some


@pytest.mark.parametrize(
    ("text", "file", "flag"),
    [
        (
            "option 'valueformat': 'xml', need",
            "setting 'value_format': 'xml', need",
            "flag --value-format: 'xml', need",
        ),
        ("needs the option 'valueSubject'", "needs the setting 'value_subject'", "needs the flag --value-subject"),
        ("option mergeSchema=true adds it", "setting merge_schema=true adds it", "flag --merge-schema adds it"),
        ("without valueFormat=json, avro", "without value_format=json, avro", "without --value-format json, avro"),
        (
            "option 'schema.registry.url'",
            "setting 'schema_registry.url'",
            "flag --schema-registry url=ADDRESS",
        ),
        ("option 'positions', /lake/valueFormats/x", *["option 'positions', /lake/valueFormats/x"] * 2),
        ("unknown.valueFormat my-valueSchema", *["unknown.valueFormat my-valueSchema"] * 2),
    ],
)
def test_names_are_in_the_spelling_of_the_place(text: str, file: str, flag: str) -> None:
    """And nothing else of the text changes."""
    assert respelled(text, Spelling.FILE) == file
    assert respelled(text, Spelling.FLAG) == flag
    assert respelled(text, Spelling.QUERY) == text


def test_every_option_of_rows_has_a_spelling() -> None:
    """A new one would be named as in a query."""
    source = (Path(option_spellings.__file__).parents[1] / "fleet" / "fleet_settings.py").read_text()
    names = re.findall(r'"([a-z]+[A-Z][A-Za-z]+)": self\.', source) + re.findall(r'"(mergeSchema)"', source)
    assert len(names) >= 7
    for name in names:
        assert respelled(f"'{name}'", Spelling.FLAG) == f"--{re.sub('[A-Z]', lambda one: '-' + one[0].lower(), name)}"


def test_an_error_keeps_its_kind() -> None:
    """Callers tell errors apart by it."""
    with pytest.raises(OptionError, match=r"^--value-null$"), spelled(Spelling.FLAG):
        raise OptionError("'valueNull'")
    with pytest.raises(ValueError, match="'valueNull'"), spelled(Spelling.FLAG):
        raise ValueError("'valueNull'")


def test_a_table_that_lacks_a_column_names_the_setting(tmp_path: Path) -> None:
    """An error of the first commit, long after the settings were read."""
    first = TableWriter(str(tmp_path / "t"), "g", "a")
    first.commit(first.land(some("x", 0, 1), {"x"}), [Range("x", 0, 0, 1)])
    given = {"valueFormat": "json", "valueSchema": '{"id": "bigint"}'}
    rows = RowOptions.parse(given, {}, table="t", spelling=Spelling.FILE)
    second = TableWriter(str(tmp_path / "t"), "g", "a", rows=rows)
    with pytest.raises(SchemaError, match="setting merge_schema=true adds it"):
        second.commit(second.land(some("x", 1, 2), {"x"}), [Range("x", 0, 1, 2)])
