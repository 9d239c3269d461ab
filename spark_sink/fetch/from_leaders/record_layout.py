"""The layout of a decoded record: offset, time, and where its key, value and headers are in a response."""

import numpy as np

RECORD = np.dtype(
    [
        ("offset", "<i8"),
        ("timestamp", "<i8"),
        ("timestamp_type", "<i8"),
        ("key", "<u8"),
        ("key_bytes", "<u8"),
        ("value", "<u8"),
        ("value_bytes", "<u8"),
        ("headers", "<u8"),
        ("headers_bytes", "<u8"),
    ]
)
