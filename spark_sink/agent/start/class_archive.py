"""Archives of a JVM's classes (application class-data sharing, JEP 350), kept from run to run.

A JVM that maps such a file into memory neither reads nor verifies its classes: Spark starts in half the time. The file
is made once for a Java and a set of jars, when a JVM that was started with `recording` ends by itself. A JVM checks
jars and version itself, and goes on without a file that does not fit.
"""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_sink.agent.start.java_command import cache_directory

_SHOWN = 12  # hexadecimal digits of each of the two hashes in a file's name
# A file that no longer fits costs time, and its warnings would confuse.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
# Newer JVMs map an archive to a random address, and so change every pointer in it: 150 MB cannot be shared, and the
# start takes longer. The addresses of the heap and of libraries stay random.
_AT_ITS_ADDRESS = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"


def archive_of(name: str, java: str, jars: Path) -> Path:
    """Return where the archive for this Java and these jars is, or would be.

    The name has a hash of the folder, so that environments beside each other keep theirs, and one of what is in it.
    """
    about = [(file, file.stat()) for file in (Path(java).resolve(), *sorted(jars.glob("*.jar")))]
    content = "".join(f"{file} {found.st_size} {found.st_mtime_ns}\n" for file, found in about)
    return cache_directory() / f"classes-{name}-{_hash(str(jars.resolve()))}-{_hash(content)}.jsa"


def using(archive: Path) -> str:
    """Return the JVM's options to use an archive; none where there is no such file."""
    return f"-XX:SharedArchiveFile={archive} {_AT_ITS_ADDRESS} {_QUIET}" if archive.is_file() else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN]


@contextmanager
def recording(archive: Path) -> Iterator[str]:
    """Make an archive: yield the options of a JVM that ends by itself within the block.

    Raises:
        OSError: the folder cannot be written, or the JVM wrote no archive.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="recording-") as work:
        written = Path(work) / archive.name
        yield f"-XX:ArchiveClassesAtExit={written} {_QUIET}"
        written.replace(archive)
    # Of what was in the same folder before: each has 150 MB.
    kind = archive.name.rpartition("-")[0]
    for other in archive.parent.glob(f"{kind}-*.jsa"):
        if other != archive:
            other.unlink(missing_ok=True)
