"""What becomes of fields of a value that the schema does not know, as the option `unknownFields` says.

* `rescue`: the column `_rescued` holds them as JSON text; null where a record has none.
* `evolve`: the same; and where the columns are those of the table, the sink's `mergeSchema` adds columns for them,
  which later batches fill.
* `quarantine`: the record is bad.
* `ignore`: they are dropped, and not looked for.
"""

from typing import Literal

Policy = Literal["rescue", "evolve", "quarantine", "ignore"]
POLICIES: tuple[Policy, ...] = ("rescue", "evolve", "quarantine", "ignore")
COLUMN = "_rescued"
