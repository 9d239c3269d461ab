"""Rows of raw values as a query with a quarantine lands them."""

import pyarrow as pa

from spark_sink.formats.bad_values_quarantined import COLUMN, REASON

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
        (COLUMN, REASON),
    ]
)
