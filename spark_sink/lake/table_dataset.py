"""The rows of a Delta table as an Arrow dataset that reads the files of every engine."""

from typing import TYPE_CHECKING

from deltalake import DeltaTable

from spark_sink.lake.foreign_parquet import TIME_UNIT

if TYPE_CHECKING:
    import pyarrow.dataset as pa_dataset


def table_dataset(handle: DeltaTable) -> "pa_dataset.Dataset":
    """Return the rows of the handle's version.

    Raises:
        DeltaError: the table has a feature that delta-rs does not read.
    """
    from pyarrow.dataset import ParquetReadOptions  # noqa: PLC0415 -- slow to import, and most tasks read no table

    return handle.to_pyarrow_dataset(parquet_read_options=ParquetReadOptions(coerce_int96_timestamp_unit=TIME_UNIT))
