"""Keeps pandas out of an agent's process: half of a second of its start, and tens of MB of its memory."""

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out here", name=fullname)


def leave_out_pandas() -> None:
    """Let Arrow find that there is no pandas; nothing if a module has imported pandas before.

    Arrow imports pandas to ask whether a value that it converts is one of pandas', remembers if it cannot, and then
    takes the value as Python's own. This process has no values of pandas. Other modules can import it afterwards.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
