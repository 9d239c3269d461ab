"""The errors of the pipeline.

SparkSinkError
├── ClusterError     the local Kafka cluster could not be started or changed
├── OffsetError      a text is not the offset of a batch
├── OptionError      an option of the source or the sink is invalid
├── DataLossError    records that were to be read are gone
├── FetchError       existing records could not be read
├── TableError       the table is not what the sink needs, or cannot be reached
│   ├── ConflictError    another writer committed first; read the table again and retry
│   ├── SchemaError      the columns of a batch do not fit the table
│   └── HoleError        a commit would leave out records; refused
├── DeadLetterError  records of a quarantine could not be published
├── JoinError        the consumer group could not be joined, or continues without this reader
├── StartError       a check before the start of an agent found a fault
├── LaterError       a check found a fault that may end without a change of the settings
├── LagError         Kafka did not report the ends of partitions
├── QueryError       the query of an agent has failed
├── ReportError      a report.json of the demo cannot be read
└── DemoError        the demo could not run, or found lost or duplicate records
"""

import errno
import inspect
import os
import re

DISK_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
"""The system's words for a full disk: errors of the JVM, Arrow, delta-rs and pyiceberg have no common class."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BACKUP = "put it back from a backup"
_DAMAGED_LOG = {
    r"Expected contiguous commit files, but found gap: .*?\bversion: (\d+),.*\bversion: (\d+),.*": (
        rf"the log has version \2 after version \1, and what is between them is missing or not listed: "
        f"if it is gone, {_BACKUP}"
    ),
    r"No table metadata or protocol found in delta log\.?": (
        f"the log begins with no whole commit or checkpoint: its first commit is missing or empty, {_BACKUP}"
    ),
    r"No files in log segment\.?": f"the log has neither a commit nor a checkpoint, but other files: {_BACKUP}",
    r"Generic error: A Delta Lake table already exists at that location\.?": (
        f"the folder _delta_log has files, but neither a commit nor a checkpoint: {_BACKUP}, or "
        "remove it if there was no table"
    ),
    r"Invalid Checkpoint: Had a _last_checkpoint hint but didn't find any checkpoints\.?": (
        f"_delta_log/_last_checkpoint names a checkpoint that is missing: {_BACKUP}, or delete "
        "_last_checkpoint if the log has all commits from version 0 on"
    ),
    r"Json error: (.+?)\.?": rf"a commit of the log is no JSON (\1): {_BACKUP}",
    r"Invalid table version: (\d+)": (
        rf"the log has no commit \1, but a checkpoint, after which delta-rs cannot write: {_BACKUP}, or "
        "commit once with Spark"
    ),
}
"""delta-rs' words for a log that lacks files, some of them lines of its own structures, and what to do."""
_FRAMES = re.compile(r"^ +(\d+: |at )\S+.*$", re.MULTILINE)  # of a call stack


class SparkSinkError(Exception):
    """Base of all errors of the pipeline; catch it to handle any of them."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


def plain(error: BaseException) -> str:
    """Return a library's message as one line: delta-rs draws causes as a coloured tree, and may add a call stack.

    Its words for a damaged log are replaced by a sentence that says what to do.
    """
    text = _FRAMES.sub("", _COLOUR.sub("", str(error)))
    text = " ".join(text.replace("\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}", "").split())
    for theirs, ours in _DAMAGED_LOG.items():  # compiled only here, since every command loads this module
        text = re.sub(f"(?:Kernel error: )?(?:Generic delta kernel error: )?{theirs}$", ours, text)
    return text


def plain_with_class(error: BaseException) -> str:
    """As `plain`, after the class of a library's error: some errors of catalogs have little other text."""
    return plain(error) if isinstance(error, SparkSinkError) else f"{type(error).__name__}: {plain(error)}"


class ClusterError(SparkSinkError):
    """The local Kafka cluster could not be started or changed."""


class OffsetError(SparkSinkError):
    """This is not the offset of a batch of the kafka-group source."""


class OptionError(SparkSinkError):
    """An option of the source or the sink has no meaning."""


class DataLossError(SparkSinkError):
    """Records that should be read no longer exist; failOnDataLoss=false continues after them."""


class FetchError(SparkSinkError):
    """Records that are there could not be read."""


class TableError(SparkSinkError):
    """The table is not what the sink needs, or cannot be reached."""


class ConflictError(TableError):
    """Another writer committed first: look at the table again and repeat."""


class SchemaError(TableError):
    """The columns of a batch do not fit the table."""


class HoleError(TableError):
    """A commit would leave out records that no one has committed; it was refused."""


class QueryError(SparkSinkError):
    """The query of an agent has failed."""


class ReportError(SparkSinkError):
    """This report of the demo cannot be read."""


class DemoError(SparkSinkError):
    """The demo could not run."""


class DeadLetterError(SparkSinkError):
    """Records of a quarantine could not be published; the next attempt continues."""


class JoinError(SparkSinkError):
    """The consumer group could not be joined, or goes on without this reader."""


class StartError(SparkSinkError):
    """A check before the start of an agent found a fault."""


class LaterError(SparkSinkError):
    """A check found a fault that may end without a change of the settings, such as a topic that is not created yet."""


class LagError(SparkSinkError):
    """Kafka did not say where its partitions end, or what a group has committed."""
