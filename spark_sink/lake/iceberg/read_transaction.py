"""A transaction whose looks at the metadata copy nothing; this module imports pyiceberg, which loads slowly."""

from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata


class ReadTransaction(Transaction):
    """A transaction that gives the metadata as it was read.

    pyiceberg's own copies the whole metadata, with all snapshots, at each of the fourteen looks of one append: most of
    the time of a commit, and more with each snapshot. The append reads them only, before its first update is staged.
    """

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata, with the staged updates if there are any."""
        return self._table.metadata if not self._updates else super().table_metadata
