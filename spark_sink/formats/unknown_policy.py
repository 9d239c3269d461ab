"""The policies for fields that the schema does not know, and for records without a value.

The option `unknownFields` sets the first:

* `rescue`: the column `_rescued` has them as JSON text; it is null if a record has none.
* `evolve`: the same; in addition, if the columns are those of the table, the sink's `mergeSchema` adds columns for
  them, which later batches fill.
* `quarantine`: the record is bad.
* `ignore`: they are dropped without a search.

A record without a value is a tombstone in a compacted topic; the option `valueNull` sets its policy:

* `quarantine`: the record is bad.
* `keep`: it is a good row; every decoded column is null.
"""

from typing import Literal

Policy = Literal["rescue", "evolve", "quarantine", "ignore"]
POLICIES: tuple[Policy, ...] = ("rescue", "evolve", "quarantine", "ignore")
NullPolicy = Literal["quarantine", "keep"]
NULL_POLICIES: tuple[NullPolicy, ...] = ("quarantine", "keep")
COLUMN = "_rescued"
