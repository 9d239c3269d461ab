"""A file system that is soon full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size_kb: int) -> Iterator[Path]:
    """Mount a file system at a folder until the end of the block; skip the test if this user may not.

    Args:
        folder: an empty folder.
        size_kb: size of the file system, in kB.
    """
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system takes root")
    try:
        yield folder
    finally:
        # Lazily: the error that a test looks at still holds the file that could not be written.
        subprocess.run(["/bin/umount", "-l", str(folder)], check=True)
