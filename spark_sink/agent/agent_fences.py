"""Prevents two agents from sharing a name on one machine, and a checkpoint from being used for two tables."""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.errors import OptionError
from spark_sink.lake.table_storage import filesystem, read_text

_BINDING = "azimuth-table.json"


@contextmanager
def only_agent_of_its_name(settings: AgentSettings) -> Iterator[None]:
    """Lock the agent's name on this machine: the assignor treats two members of one name as an agent that returned.

    The lock ends with the process, however it dies. It does not cover other machines.

    Raises:
        OptionError: a process of this machine holds the lock.
    """
    servers = sorted(one.strip() for one in settings.bootstrap_servers.split(","))
    identity = json.dumps([servers, settings.group, settings.agent])
    name = f"azimuth-agent-{hashlib.sha256(identity.encode()).hexdigest()[:24]}.lock"
    # Readable by all users, because agents may run as several users; a lock needs no write access.
    handle = os.open(Path(tempfile.gettempdir()) / name, os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OptionError(
                f"agent {settings.agent!r} of group {settings.group!r} is running on this machine already: give each "
                "agent a name of its own (--agent); the default is the host's name"
            ) from error
        yield
    finally:
        os.close(handle)


def bind_checkpoint(settings: AgentSettings) -> None:
    """Write the table's address into a new checkpoint, or compare it with the address in an existing one.

    A checkpoint has the progress of a query; for another table it would leave a hole.

    Raises:
        OptionError: the checkpoint belongs to another table.
    """
    if refuse_other_table(settings) is None:
        files = filesystem(settings.checkpoint, settings.storage, make=True)
        with files.open_output_stream(_BINDING) as stream:
            stream.write(json.dumps({"table": settings.address}).encode())


def refuse_other_table(settings: AgentSettings) -> str | None:
    """Return the address of the checkpoint's table; None for a new checkpoint.

    Raises:
        OptionError: it is not the table of the settings.
    """
    table = settings.address
    files = filesystem(settings.checkpoint, settings.storage)
    bound = _bound(read_text(files, _BINDING), f"{settings.checkpoint}/{_BINDING}")
    if bound not in {None, table}:
        raise OptionError(
            f"checkpoint {settings.checkpoint} is of the table {bound}, not of {table}: give each table a checkpoint "
            "of its own (--checkpoint)"
        )
    return bound


def _bound(text: str | None, place: str) -> str | None:
    try:
        value = json.loads(text or "")
    except ValueError:  # missing or partial: an agent died while it wrote the file
        return None
    if not isinstance(value, dict) or not isinstance(value.get("table"), str):
        raise OptionError(f"{place}: it names no table; give another --checkpoint")
    return str(value["table"])
