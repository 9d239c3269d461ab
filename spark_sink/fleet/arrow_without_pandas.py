"""Keeps pandas out of an agent's process: 0.76 s of processor time at its start, and the memory of its modules."""

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out here", name=fullname)


def leave_out_pandas() -> None:
    """Let Arrow's import of pandas fail once; this has no effect if pandas is already imported.

    Arrow imports pandas to recognise its values. If the import fails, Arrow does not try again, and takes each value as
    one of Python. This process has no values of pandas. Other modules can import it afterwards.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
