"""Names of a package that are imported at first use (PEP 562)."""

import importlib
from collections.abc import Mapping
from typing import Any


def attribute(package: str, homes: Mapping[str, str], name: str) -> Any:  # noqa: ANN401 -- whatever the name stands for
    """Load a name of a package.

    Args:
        package: its full name.
        homes: the module inside the package that holds each name.
        name: the one to load.

    Raises:
        AttributeError: the package has no such name.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
