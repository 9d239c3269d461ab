"""Prevents two agents of one machine from sharing a name, or a checkpoint."""

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
from spark_sink.lake.table_addresses import folder_of_spark, local_path


@contextmanager
def only_agent_of_its_name(settings: AgentSettings) -> Iterator[None]:
    """Lock the agent's name on this machine: the assignor treats two members of one name as an agent that returned.

    The lock ends with the process, however it dies. It does not cover other machines.

    Raises:
        OptionError: a process of this machine holds the lock.
    """
    servers = sorted(one.strip() for one in settings.bootstrap_servers.split(","))
    refused = (
        f"agent {settings.agent!r} of group {settings.group!r} is running on this machine already: give each agent a "
        "name of its own (--agent); the default is the host's name"
    )
    with _locked("agent", [servers, settings.group, settings.agent], refused):
        yield


@contextmanager
def only_agent_of_its_checkpoint(settings: AgentSettings) -> Iterator[None]:
    """Lock a local checkpoint on this machine: of two agents Spark ends one, and its words name no way out.

    A checkpoint in an object store is not locked: two stores may have one address, at two endpoints.

    Raises:
        OptionError: a process of this machine holds the lock.
    """
    folder = local_path(folder_of_spark(settings.checkpoint))
    if folder is None:
        yield
        return
    refused = (
        f"checkpoint {settings.checkpoint} is in use by another agent on this machine: give each agent a checkpoint of "
        "its own (--checkpoint)"
    )
    with _locked("checkpoint", [str(folder.resolve())], refused):
        yield


@contextmanager
def _locked(kind: str, parts: list[str | list[str]], refused: str) -> Iterator[None]:
    name = f"azimuth-{kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}.lock"
    # Readable by all users, because agents may run as several users; a lock needs no write access.
    handle = os.open(Path(tempfile.gettempdir()) / name, os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OptionError(refused) from error
        yield
    finally:
        os.close(handle)
