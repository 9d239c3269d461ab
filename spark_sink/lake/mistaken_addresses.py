"""Refuses addresses that mean another folder than their author thinks. Pure."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from assignors.settings import proposal
from spark_sink.errors import OptionError

_HOME: Final = "~"
_PART: Final = re.compile(r"\{[A-Za-z_]\w*\}")


def refuse_mistaken(address: str, placeholders: Collection[str] = ()) -> None:
    """Refuse an address that begins with `~/`, or has a name in braces that stands for nothing.

    Without this, a folder with the name `~` or `{topc}` would be created.

    Args:
        address: of a table or a folder.
        placeholders: with their braces, those that have a meaning in this address.

    Raises:
        OptionError: it is such an address.
    """
    if address == _HOME or address.startswith(f"{_HOME}/"):
        raise OptionError(
            f"{address}: only a shell replaces {_HOME} by the home folder; write the whole path{_example(address)}"
        )
    for part in _PART.findall(address):
        if part not in placeholders:
            known = f"known are {', '.join(placeholders)}" if placeholders else "leave it out"
            raise OptionError(f"{address}: {part} stands for nothing here; {proposal(part, placeholders) or known}")


def _example(address: str) -> str:
    try:
        return f", such as {Path(address).expanduser()}"
    except RuntimeError:  # a container's user may have no home folder
        return ""
