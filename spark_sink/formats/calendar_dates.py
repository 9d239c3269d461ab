"""Finds dates outside the years 1 to 9999: the lake's engines cannot read them in a partition column.

delta-rs cannot open a table with such a value, so one record would end all reading and writing of the table.
"""

from collections.abc import Sequence
from datetime import date
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_EPOCH: Final = date(1970, 1, 1)
FIRST: Final = (date.min - _EPOCH).days
LAST: Final = (date.max - _EPOCH).days


def rows_outside(columns: Sequence[pa.Array], schema: pa.Schema) -> dict[int, str]:
    """Return the name of a date column by the number of each row whose date is outside these years.

    Args:
        columns: arrays of N values.
        schema: their names.
    """
    found: dict[int, str] = {}
    for field, column in zip(schema, columns, strict=True):
        if pa.types.is_date32(field.type):
            days = column.cast(pa.int32())
            outside = pc.or_(pc.less(days, FIRST), pc.greater(days, LAST))
            found |= dict.fromkeys(pc.indices_nonzero(pc.fill_null(outside, fill_value=False)).to_pylist(), field.name)
    return found
