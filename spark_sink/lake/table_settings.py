"""Settings for creating and changing a table of either format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_sink.lake.parquet_landing import Layout


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a partitioning.

    Attributes:
        column: the source column.
        transform: `identity`, `day` or `bucket`.
        buckets: number of buckets; 0 for the other transforms.
    """

    column: str
    transform: str = "identity"
    buckets: int = 0

    @property
    def name(self) -> str:
        """The name of the partition field, as Iceberg's other writers call it."""
        return self.column if self.transform == "identity" else f"{self.column}_{self.transform}"

    def __str__(self) -> str:
        if self.transform == "bucket":
            return f"bucket({self.buckets}, {self.column})"
        return self.column if self.transform == "identity" else f"{self.transform}({self.column})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Settings for creating and changing a table.

    Attributes:
        layout: layout of the files.
        properties: of a new table; they override those that the format sets.
        merge_schema: add columns of the batch that the table lacks.
        terms: partitioning of a new Iceberg table.
    """

    layout: Layout = field(default_factory=Layout)
    properties: Mapping[str, str] = field(default_factory=dict)
    merge_schema: bool = False
    terms: Sequence[Term] = ()
