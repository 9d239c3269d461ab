"""Somebody else's maintenance: pyiceberg removes all old snapshots of all tables of a folder, again and again."""

import contextlib
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException


def main() -> None:
    """Expire until the process is killed."""
    database = Path(sys.argv[1]) / "catalog.db"
    while not database.exists():
        time.sleep(0.1)
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{database}?timeout=60", init_catalog_tables="false")
    while True:
        for name in [table for (namespace,) in catalog.list_namespaces() for table in catalog.list_tables(namespace)]:
            with contextlib.suppress(CommitFailedException):  # lost against the commits of agents
                catalog.load_table(name).maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
        time.sleep(1)


if __name__ == "__main__":
    main()
