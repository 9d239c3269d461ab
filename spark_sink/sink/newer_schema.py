"""Decides whether rows of a newer schema may be written to the existing tables."""

from collections.abc import Callable, Iterable

import pyarrow as pa

from spark_sink.errors import OptionError, SchemaError
from spark_sink.formats import Decoder
from spark_sink.lake.schema_fit import fit_schema
from spark_sink.lake.struct_fields import all_paths, lost_paths, new_paths


def why_not(
    before: Decoder,
    latest: Decoder,
    rows: Callable[[Decoder], pa.Schema],
    tables: Iterable[tuple[str, pa.Schema | None]],
) -> str | None:
    """Return why rows of a newer schema could not be written; None if they can.

    Args:
        before: the decoder in use.
        latest: the decoder of the newer schema.
        rows: returns the columns of the written rows of a decoder.
        tables: name and columns of each table; no columns for one that does not exist.

    Raises:
        TableError: a table cannot be read; the next attempt may succeed.
    """
    if changed := lost_paths(before.columns, latest.columns):
        return f"it removes or changes {', '.join(changed)}"
    if required := sorted(_newly_required(before, latest)):
        return f"its fields {', '.join(required)} have no default, so records of the schema before it would become bad"
    try:
        wanted = rows(latest)
        fit_schema("the schema", wanted, wanted)  # names that differ only in case
        for name, have in tables:
            if have is not None:
                fit_schema(name, have, wanted)
    except (OptionError, SchemaError) as error:
        return str(error)
    return None


def _newly_required(before: Decoder, latest: Decoder) -> set[str]:
    """Return the fields without a default that records of the schema before may lack.

    A field inside a new struct is not among them: these records lack the struct, and its own default counts.
    """
    known = all_paths(before.columns)
    found = _required(latest) - _required(before)
    return {path for path in found if "." not in path or path.rpartition(".")[0] in known}


def _required(decoder: Decoder) -> frozenset[str]:
    """Return the fields that each record must have; those of Avro only, because Protobuf has a default for each."""
    from spark_sink.formats import AvroDecoder  # noqa: PLC0415 -- an optional library

    return decoder.required if isinstance(decoder, AvroDecoder) else frozenset()


def new_columns(before: Decoder, latest: Decoder) -> str:
    """Return the names of the columns, and the paths of the fields inside them, that a newer schema adds, by commas."""
    known = {one.name: one.type for one in before.columns}
    found = []
    for one in fit_schema("the schema", before.columns, latest.columns):
        found += new_paths(one.name, known.get(one.name), one.type)
    return ", ".join(found)
