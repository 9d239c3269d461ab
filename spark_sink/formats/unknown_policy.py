"""The policies for fields of a value that the schema does not know, set by the option `unknownFields`.

* `rescue`: the column `_rescued` has them as JSON text; it is null if a record has none.
* `evolve`: the same; in addition, if the columns are those of the table, the sink's `mergeSchema` adds columns for
  them, which later batches fill.
* `quarantine`: the record is bad.
* `ignore`: they are dropped without a search.
"""

from typing import Literal

Policy = Literal["rescue", "evolve", "quarantine", "ignore"]
POLICIES: tuple[Policy, ...] = ("rescue", "evolve", "quarantine", "ignore")
COLUMN = "_rescued"
