"""Somebody else's OPTIMIZE: delta-rs joins the small files of all tables below a folder, again and again."""

import contextlib
import sys
import time
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError


def main() -> None:
    """Optimize until the process is killed."""
    root = Path(sys.argv[1])
    while True:
        for log in sorted(root.rglob("_delta_log")):
            with contextlib.suppress(DeltaError):  # the table is being created, or a commit lost against another
                DeltaTable(str(log.parent)).optimize.compact()
        time.sleep(1)


if __name__ == "__main__":
    main()
