"""Keeps pandas out of an agent's process: 0.76 s of processor time at its start, and the memory of its modules."""

import pyarrow as pa

from assignors.lazy_imports import left_out


def leave_out_pandas() -> None:
    """Let Arrow's import of pandas fail once; this has no effect if pandas is already imported.

    Arrow imports pandas to recognise its values. If the import fails, Arrow does not try again, and takes each value as
    one of Python. This process has no values of pandas. Other modules can import it afterwards.
    """
    with left_out("pandas"):
        pa.array([0])
