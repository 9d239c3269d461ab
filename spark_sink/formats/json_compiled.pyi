import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["INEXACT_ROW", "LEFT", "Plan", "can_plan"]

LEFT: int
INEXACT_ROW: int

class Plan:
    def __init__(self, columns: pa.Schema, *, any_text: bool, unknown: bool) -> None: ...
    def decode(self, values: pa.Array) -> tuple[list[pa.Array], npt.NDArray[np.uint8]]: ...

def can_plan(columns: pa.Schema) -> bool: ...
