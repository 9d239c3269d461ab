"""The name of an agent that no one has named: made once, and kept in a file beside its status file."""

import logging
import os
import uuid
from pathlib import Path

from spark_sink.errors import OptionError

log = logging.getLogger(__name__)


def kept_name(status_file: Path) -> str:
    """Return the name that is kept beside a status file; make one at the first call.

    An agent with the same name as before gets its topics back after a restart. So the name outlives the process, and
    agents with status files of their own have names of their own.

    Raises:
        OptionError: the file cannot be read or written, or does not contain a name.
    """
    file = status_file.with_name(f"{status_file.name}.agent")
    try:
        if not file.exists():
            _keep(file, str(uuid.uuid4()))
        name = str(uuid.UUID(file.read_text(encoding="ascii").strip()))
    except OSError as error:
        raise OptionError(f"{file}: the agent's name cannot be kept: {error.strerror}; give --agent") from error
    except ValueError as error:
        raise OptionError(f"{file}: does not contain the name of an agent: remove the file, or give --agent") from error
    return name


def _keep(file: Path, name: str) -> None:
    """Write the name, unless another process is faster: all processes with this file then have its name."""
    new = file.with_name(f"{file.name}.{name}")
    try:
        with new.open("x", encoding="ascii") as opened:
            opened.write(f"{name}\n")
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(new, file)
        except FileExistsError:
            return
    finally:
        new.unlink(missing_ok=True)
    log.info("fleet: the agent is named %s, which %s keeps", name, file)
