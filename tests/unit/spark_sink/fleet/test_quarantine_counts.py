"""The count of bad records, which a background thread of an agent makes for its status."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from spark_sink.fleet.quarantine_counts import quarantined_rows


def test_a_quarantine_that_does_not_exist_has_no_records(tmp_path: Path) -> None:
    """A table without bad records has none."""
    assert quarantined_rows(str(tmp_path / "none")) == 0
    write_deltalake(str(tmp_path / "some"), pa.table({"offset": [1, 2, 3]}))
    assert quarantined_rows(str(tmp_path / "some")) == 3


def test_other_threads_run_while_a_store_does_not_answer() -> None:
    """delta-rs keeps the interpreter's lock for some questions, and an agent that ends would wait for this one."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:  # the system accepts, and nothing reads
        storage = {
            "aws_endpoint_url": f"http://127.0.0.1:{server.getsockname()[1]}",
            "aws_region": "us-east-1",
            "aws_access_key_id": "a",
            "aws_secret_access_key": "b",
            "allow_http": "true",
            "timeout": "4s",
            "retry_timeout": "1s",
        }

        def count() -> None:
            with contextlib.suppress(OSError):
                quarantined_rows("s3://lake/table_quarantine", storage)

        counting = threading.Thread(target=count, daemon=True)
        longest_s, last = 0.0, time.monotonic()
        counting.start()
        while counting.is_alive():
            counting.join(0.05)
            longest_s, last = max(longest_s, time.monotonic() - last), time.monotonic()
    assert longest_s < 3
