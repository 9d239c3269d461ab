"""Fields inside structs, also inside lists and maps, compared by their names: which of them a type lacks. Pure.

Paths are those of Spark and Iceberg: `place.city`, `items.element.code`, `labels.value.text`.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from spark_sink.errors import SchemaError
from spark_sink.formats.variant_type import is_variant


def lacking_part(name: str, path: str, have: pa.DataType, want: pa.DataType) -> pa.DataType | None:
    """Return the part of a wanted type that a table's type lacks.

    The order of fields means nothing, and fields that only the table has are null in the rows.

    Args:
        name: name of the table, for messages.
        path: path of the field, or name of the column.
        have: the table's type.
        want: the type of the rows.

    Returns:
        The wanted type with only its new fields, which are nullable; None if the table lacks none.

    Raises:
        SchemaError: types differ in another way, or names differ only in case.
    """
    if is_variant(have) or is_variant(want):
        _refuse_other(name, path, have, want)
        return None
    if pa.types.is_struct(have) and pa.types.is_struct(want):
        new = lacking_fields(name, path, have, want)
        return pa.struct(new) if new else None
    if pa.types.is_list(have) and pa.types.is_list(want):
        part = lacking_part(name, f"{path}.element", have.value_type, want.value_type)
        return None if part is None else pa.list_(pa.field(want.value_field.name, part))
    if pa.types.is_map(have) and pa.types.is_map(want):
        _refuse_other(name, f"{path}.key", have.key_type, want.key_type)
        part = lacking_part(name, f"{path}.value", have.item_type, want.item_type)
        return None if part is None else pa.map_(want.key_type, part)
    _refuse_other(name, path, have, want)
    return None


def lacking_fields(name: str, path: str, have: Iterable[pa.Field], want: Iterable[pa.Field]) -> list[pa.Field]:
    """Return what the columns, or the fields of one struct, of a table lack.

    Args:
        name: name of the table, for messages.
        path: path of the struct; empty for the columns.
        have: the table's.
        want: those of the rows.

    Returns:
        New columns as they are, new fields as nullable ones, and known ones with only the fields that are new in them.

    Raises:
        SchemaError: a type differs, or names differ only in case.
    """
    what, prefix = ("field", f"{path}.") if path else ("column", "")
    cased = {one.name.lower(): one for one in have}
    new: list[pa.Field] = []
    for one in want:
        known = cased.get(one.name.lower())
        if known is None:
            new.append(pa.field(one.name, one.type) if path else one)
            continue
        if known.name != one.name:
            raise SchemaError(f"{name}: {what} {prefix + one.name!r} is called {prefix + known.name!r} in the table")
        part = lacking_part(name, prefix + one.name, known.type, one.type)
        if part is not None:
            new.append(pa.field(one.name, part))
    return new


def _refuse_other(name: str, path: str, have: pa.DataType, want: pa.DataType) -> None:
    if have != want:
        what = "field" if "." in path else "column"
        raise SchemaError(
            f"{name}: {what} {path!r} is {have} in the table and {want} in the query; cast it in the query, or write "
            "to another table"
        )


def first_new(path: str, have: pa.DataType | None, new: pa.DataType) -> tuple[str, pa.DataType]:
    """Return the path and the type of the first new field of a column.

    Args:
        path: name of the column.
        have: its type in the table; None for a new column.
        new: from `lacking_part`, or the type of a new column.
    """
    return next(_new(path, have, new))


def new_paths(path: str, have: pa.DataType | None, new: pa.DataType) -> list[str]:
    """Return the paths of all new fields of a column; arguments as those of `first_new`."""
    return [one for one, _ in _new(path, have, new)]


def _new(path: str, have: pa.DataType | None, new: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if have is None:
        yield path, new
        return
    if pa.types.is_list(new):
        yield from _new(f"{path}.element", have.value_type, new.value_type)
    elif pa.types.is_map(new):
        yield from _new(f"{path}.value", have.item_type, new.item_type)
    else:
        known = {one.name: one.type for one in have}
        for one in new:
            yield from _new(f"{path}.{one.name}", known.get(one.name), one.type)


def lost_paths(before: pa.Schema, after: pa.Schema) -> list[str]:
    """Return the paths of columns and fields that later columns do not have, or have with another type."""
    known = {one.name: one.type for one in after}
    return [path for one in before for path in _lost(one.name, one.type, known.get(one.name))]


def _lost(path: str, before: pa.DataType, after: pa.DataType | None) -> Iterator[str]:
    if after is not None and pa.types.is_struct(before) and pa.types.is_struct(after):
        known = {one.name: one.type for one in after}
        for one in before:
            yield from _lost(f"{path}.{one.name}", one.type, known.get(one.name))
    elif after is not None and pa.types.is_list(before) and pa.types.is_list(after):
        yield from _lost(f"{path}.element", before.value_type, after.value_type)
    elif after is not None and pa.types.is_map(before) and pa.types.is_map(after) and before.key_type == after.key_type:
        yield from _lost(f"{path}.value", before.item_type, after.item_type)
    elif before != after:
        yield path


def all_paths(columns: pa.Schema) -> set[str]:
    """Return the paths of all columns, and of all that is inside them."""
    return {path for one in columns for path in _paths(one.name, one.type)}


def _paths(path: str, kind: pa.DataType) -> Iterator[str]:
    yield path
    for name, inner in _inside(kind):
        yield from _paths(f"{path}.{name}", inner)


def _inside(kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        yield from ((one.name, one.type) for one in kind)
    elif pa.types.is_list(kind):
        yield "element", kind.value_type
    elif pa.types.is_map(kind):
        yield from (("key", kind.key_type), ("value", kind.item_type))
