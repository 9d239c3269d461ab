import numpy as np
import numpy.typing as npt

# The bytes of whole batches, the number of their records, whether one is compressed, and whether all are sound.
def survey(address: int, length: int) -> tuple[int, int, bool, bool]: ...

# Writes the records of `[begin, end)` from `filled` on: how many, the offset after the batches, whether all are sound.
def decode(
    address: int, length: int, begin: int, end: int, into: npt.NDArray[np.void], filled: int
) -> tuple[int, int, bool]: ...

# The ends of each record's headers, where their names and values are, shape (4, H), and whether all are sound.
def header_cells(
    found: npt.NDArray[np.void],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64], bool]: ...
