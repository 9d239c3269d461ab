"""Prevents two agents of one machine from sharing a name."""

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
