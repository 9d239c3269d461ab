"""Archives of a JVM's classes (application class-data sharing, JEP 350), kept from run to run.

A JVM that maps such a file into memory neither reads nor verifies its classes: Spark and Kafka start in half the time.
The file is made once for a Java and a set of jars, when a JVM that was started with `recording` ends by itself. A JVM
checks jars and version itself, and goes on without a file that does not fit.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spark_sink.agent.start.java_command import cache_directory

_SHOWN = 12  # hexadecimal digits of each of the two hashes in a file's name
# A file that no longer fits costs time, and its warnings would confuse.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
# Newer JVMs map an archive to a random address, and so change every pointer in it: 150 MB cannot be shared, and the
# start takes longer. The addresses of the heap and of libraries stay random.
_AT_ITS_ADDRESS = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
_LONGEST_S = 3600.0  # of a recording that still runs


def archive_of(name: str, java: str, jars: Path) -> Path:
    """Return where the archive for this Java and these jars is, or would be.

    The name has a hash of the two places, so that environments beside each other keep theirs, and one of what is there.

    Raises:
        ClusterError: there is no folder for it.
    """
    places = (Path(java).resolve(), jars.resolve())
    about = [(file, file.stat()) for file in (places[0], *sorted(jars.glob("*.jar")))]
    # Seconds, as the JVM compares them: layers of a container image keep no fractions.
    content = "".join(f"{file} {found.st_size} {int(found.st_mtime)}\n" for file, found in about)
    return cache_directory() / f"classes-{name}-{_hash(' '.join(map(str, places)))}-{_hash(content)}.jsa"


def using(archive: Path) -> str:
    """Return the JVM's options to use an archive; none where there is no such file, or where it cannot be read."""
    return f"-XX:SharedArchiveFile={archive} {_AT_ITS_ADDRESS} {_QUIET}" if os.access(archive, os.R_OK) else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN]


@contextmanager
def recording(archive: Path) -> Iterator[str]:
    """Make an archive: yield the options of a JVM that ends by itself within the block.

    Raises:
        OSError: the folder cannot be written, or the JVM wrote no archive.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    _remove_killed(archive.parent)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="recording-") as work:
        written = Path(work) / archive.name
        yield f"-XX:ArchiveClassesAtExit={written} {_QUIET}"
        written.replace(archive)
    # Of what was in the same folder before: each has 150 MB.
    kind = archive.name.rpartition("-")[0]
    for other in archive.parent.glob(f"{kind}-*.jsa"):
        if other != archive:
            other.unlink(missing_ok=True)


def _remove_killed(folder: Path) -> None:
    """Remove what a killed recording has left."""
    for work in folder.glob("recording-*"):
        with suppress(OSError):
            if time.time() - work.stat().st_mtime > _LONGEST_S:
                shutil.rmtree(work)
