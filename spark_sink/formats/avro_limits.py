"""Avro: refuses values that would end the process which decodes them.

fastavro reads a record inside itself by recursion in C, without a bound, and some thousand levels overflow the stack.
An array of items without bytes (nulls, records without fields) may announce any number of them in a few bytes, and the
list of them takes all memory. Only schemas with one of the two need this look at each value.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Any  # of Avro, as parsed by fastavro
Named = Mapping[str, Any]
Check = Callable[[bytes], None]

MOST_LEVELS = 500  # of records, arrays and maps in each other; fastavro reads some 3,000 with a stack of 8 MB
MOST_EMPTY = 1_000_000  # items without bytes in one value

_SIZES = {"boolean": 1, "float": 4, "double": 8}
_NUMBERS = {"int", "long", "enum"}
_TEXTS = {"string", "bytes"}
_MOST_VARINT_BYTES = 10


def check_of(writer: Schema, named: Named) -> Check | None:
    """Return a function that refuses bytes of this schema by a ValueError; None if none can do harm.

    Raises:
        ValueError: a record contains itself always, so that no bytes end it.
    """
    types = _Types(named)
    types.look(writer, ())
    if not types.recursive and not types.empty_items:
        return None

    def check(payload: bytes) -> None:
        # A level takes a byte at least.
        if types.empty_items or len(payload) > MOST_LEVELS:
            _Walk(payload, types).over(writer)

    return check


class _Types:
    """The types of a schema.

    Attributes:
        recursive: a record may contain itself.
        empty_items: an array has items without bytes.
    """

    def __init__(self, named: Named) -> None:
        self._named = named
        self._seen: set[str] = set()
        self._empty: dict[str, bool | None] = {}  # of records; None while it is not known
        self.recursive = False
        self.empty_items = False

    def definition(self, kind: Schema) -> Schema:
        """Return a union, the name of a primitive type, or the definition of a type."""
        while isinstance(kind, dict) and not isinstance(kind["type"], str):
            kind = kind["type"]
        name = kind["type"] if isinstance(kind, dict) else kind
        return self._named.get(name, kind) if isinstance(name, str) else kind

    def look(self, kind: Schema, above: tuple[str, ...]) -> None:
        """Look at all types inside a type."""
        kind = self.definition(kind)
        if isinstance(kind, list):
            inner = kind
        elif isinstance(kind, dict):
            if (name := kind.get("name")) is not None:
                self.recursive |= name in above
                if name in self._seen:
                    return
                self._seen.add(name)
                above = (*above, name)
                self.empty(kind)
            self.empty_items |= kind["type"] == "array" and self.empty(kind["items"])
            inner = [one["type"] for one in kind.get("fields", ())]
            inner += [kind[name] for name in ("items", "values") if name in kind]
        else:
            return
        for one in inner:
            self.look(one, above)

    def empty(self, kind: Schema) -> bool:
        """Return whether the values of a type take no bytes."""
        kind = self.definition(kind)
        if isinstance(kind, list):
            return False
        match _type_name(kind):
            case "null":
                return True
            case "fixed":
                return not kind["size"]
            case "record" | "error":
                return self._empty_record(kind)
            case _:
                return False

    def _empty_record(self, kind: dict[str, Any]) -> bool:
        name = kind["name"]
        if name not in self._empty:
            self._empty[name] = None
            # A list, because each field may contain the record.
            self._empty[name] = all([self.empty(one["type"]) for one in kind["fields"]])  # noqa: C419
        if (found := self._empty[name]) is None:
            raise ValueError(f"record {name} contains itself always, so no value of it ends")
        return found


def _type_name(kind: Schema) -> str:
    """Return the name of a type that is not a union."""
    return str(kind["type"] if isinstance(kind, dict) else kind)


class _Walk:
    """One pass over the bytes of a value, with a stack of its own."""

    def __init__(self, payload: bytes, types: _Types) -> None:
        self._payload = payload
        self._types = types
        self._at = 0
        self._empty = 0

    def over(self, writer: Schema) -> None:
        levels = [iter([writer])]
        while levels:
            if len(levels) > MOST_LEVELS:
                raise ValueError(f"the value has more than {MOST_LEVELS} levels")
            kind = next(levels[-1], None)
            if kind is None:
                levels.pop()
            elif (inner := self._value(kind)) is not None:
                levels.append(inner)

    def _value(self, kind: Schema) -> Iterator[Schema] | None:
        """Pass over a value; return the types of the values inside it, which follow."""
        kind = self._types.definition(kind)
        while isinstance(kind, list):
            branch = self._number()
            if not 0 <= branch < len(kind):
                raise ValueError(f"the union has no type {branch}")
            kind = self._types.definition(kind[branch])
        name = _type_name(kind)
        if name in {"record", "error"}:
            return iter([one["type"] for one in kind["fields"]])
        if name in {"array", "map"}:
            return self._items(kind)
        if name in _NUMBERS:
            self._number()
        elif name != "null":
            self._pass(self._number() if name in _TEXTS else kind["size"] if name == "fixed" else _SIZES[name])
        return None

    def _items(self, kind: Schema) -> Iterator[Schema]:
        one = [kind["items"]] if kind["type"] == "array" else ["string", kind["values"]]
        empty = kind["type"] == "array" and self._types.empty(kind["items"])
        while count := self._number():
            if count < 0:
                count = -count
                self._number()  # the size of the block
            if empty:
                self._empty += count
                if self._empty > MOST_EMPTY:
                    raise ValueError(f"the value has more than {MOST_EMPTY} items without bytes")
                continue
            for _ in range(count):
                yield from one

    def _number(self) -> int:
        value = 0
        for place in range(_MOST_VARINT_BYTES):
            if self._at >= len(self._payload):
                raise ValueError("the bytes end inside the value")
            byte = self._payload[self._at]
            self._at += 1
            value |= (byte & 0x7F) << (7 * place)
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise ValueError("a number has too many bytes")

    def _pass(self, size: int) -> None:
        if not 0 <= size <= len(self._payload) - self._at:
            raise ValueError("the bytes end inside the value")
        self._at += size
