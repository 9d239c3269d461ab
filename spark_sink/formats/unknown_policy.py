"""What becomes of fields of a value that the schema does not know, as the option `unknownFields` says.

* `rescue`: the column `_rescued` holds them as JSON text; null where a record has none.
* `evolve`: the same; and where columns are inferred, a query that starts later makes columns of them, which the sink's
  `mergeSchema` adds to the table.
* `quarantine`: the record is bad.
* `ignore`: they are dropped, and not looked for.
"""

from typing import Literal

Policy = Literal["rescue", "evolve", "quarantine", "ignore"]
POLICIES: tuple[Policy, ...] = ("rescue", "evolve", "quarantine", "ignore")
COLUMN = "_rescued"
