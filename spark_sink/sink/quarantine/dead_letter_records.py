"""The Kafka records of dead letters: in full, or as a stub where the topic takes no record of this size. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_CONNECT: Final = "__connect.errors."
_OURS: Final = "__azimuth.errors."
_STAGE: Final = "VALUE_CONVERTER"
_STUB_KEY_BYTES: Final = 1024
_STUB_TEXT: Final = 500  # characters of the error
# Attributes and the differences of time and offset in a batch of one record take one byte each.
_FIXED_BYTES: Final = 3

Headers = list[tuple[str, str | bytes | None]]


class Letter(NamedTuple):
    """A record to publish."""

    place: str
    """The source, for messages."""
    key: bytes | None
    value: bytes | None
    headers: Headers


def headers(row: Mapping[str, Any], group: str) -> Headers:
    """Return the headers of a dead letter: those of the record, then the reason under the names of Kafka Connect.

    All values are texts, as Connect's are. Connect has no name for the time of the record.

    Args:
        row: a row of a quarantine, with times as microseconds since 1970.
        group: the consumer group that read the record.
    """
    found: Headers = [(one["key"], one["value"]) for one in row["headers"] or ()]
    return found + _reason(row, group)


def letter(row: Mapping[str, Any], group: str) -> Letter:
    """Return the dead letter of a record, with its key, value and headers."""
    return Letter(_place(row), row["key"], row["value"], headers(row, group))


def stub(row: Mapping[str, Any], group: str, quarantine: str) -> Letter:
    """Return a dead letter without the value and the headers of its record; it says where they are.

    The value is empty and not null, which would delete the key in a compacted topic. A long key is left out, too.

    Args:
        row: a row of a quarantine, with times as microseconds since 1970.
        group: the consumer group that read the record.
        quarantine: address of the quarantine, which keeps the whole record.
    """
    key, value, own = row["key"], row["value"], row["headers"] or ()
    long_key = key is not None and len(key) > _STUB_KEY_BYTES
    left_out = {"value": value, "headers": own, "key": long_key}
    texts = {
        f"{_OURS}left.out": ",".join(name for name, one in left_out.items() if one),
        f"{_OURS}value.bytes": str(len(value or b"")),
        f"{_OURS}quarantine": quarantine,
    }
    short = {**row, "error_text": row["error_text"] and row["error_text"][:_STUB_TEXT]}
    named: Headers = [*_reason(short, group), *((name, text.encode()) for name, text in texts.items())]
    return Letter(_place(row), None if long_key else key, None if value is None else b"", named)


def wire_bytes(one: Letter) -> int:
    """Return the bytes of a letter in a batch of its own, without the header of the batch.

    Source: Kafka's record format of version 2, with lengths as zigzag varints.
    """
    size = _FIXED_BYTES + _field(one.key) + _field(one.value) + _varint(len(one.headers))
    size += sum(_field(name.encode()) + _field(_bytes(value)) for name, value in one.headers)
    return _varint(size) + size


def _reason(row: Mapping[str, Any], group: str) -> Headers:
    stamp = row["timestamp"]
    texts = {
        f"{_CONNECT}topic": row["topic"],
        f"{_CONNECT}partition": row["partition"],
        f"{_CONNECT}offset": row["offset"],
        f"{_CONNECT}connector.name": group,
        f"{_CONNECT}stage": _STAGE,
        f"{_CONNECT}exception.class.name": row["error_class"],
        f"{_CONNECT}exception.message": row["error_text"],
        f"{_OURS}timestamp.ms": None if stamp is None else stamp // 1000,
        f"{_OURS}schema.id": row["schema_id"],
    }
    return [(name, str(value).encode()) for name, value in texts.items() if value is not None]


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['topic']}/{row['partition']} offset {row['offset']}"


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _field(value: bytes | None) -> int:
    """Return the bytes of a field and of its length, which is -1 for null."""
    return _varint(-1 if value is None else len(value)) + len(value or b"")


def _varint(number: int) -> int:
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    return max(1, -(-zigzag.bit_length() // 7))
