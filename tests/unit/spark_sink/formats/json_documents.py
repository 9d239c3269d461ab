"""Schemas and JSON documents drawn from a seed: mostly good ones, and every way of being bad that is known."""

import json
import math
import struct
from collections.abc import Callable, Sequence
from random import Random

import pyarrow as pa

NAMES = ("a", "b", "c", "é", "A", "long_name_of_a_member", "with blank", "", "😀", "a.b", "/")
_SIMPLE = (
    *[pa.string()] * 3,
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    *[pa.int64()] * 2,
    pa.float32(),
    *[pa.float64()] * 2,
    pa.date32(),
    *[pa.timestamp("us", tz="UTC")] * 2,
    pa.timestamp("us"),
)
_BOUNDS = [
    sign * 2**bits + more for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)
]
_INTEGERS = [
    "0",
    "-0",
    "1",
    "-1",
    "999999999999999999",
    "1000000000000000000",
    "-9999999999999999999",
    *map(str, _BOUNDS),
]
_NO_NUMBERS = [
    "01",
    "-01",
    "1.",
    ".5",
    "-",
    "+1",
    "1e",
    "1e+",
    "1.e5",
    "0x10",
    "NaN",
    "Infinity",
    "-Infinity",
    "1_0",
    "\u0661",
]
_NUMBERS = [
    *("1.0", "-0.0", "0e0", "1e2", "1E+2", "1e-2", "-1.50", "100.00", "0.1", "12345678901234567.25", "1e400", "-1e400"),
    *("9007199254740993.0", "1.00000000000000011102230246251565", "5e-324", "2.4703282292062328e-324", "1e-400"),
    *("2.2250738585072011e-308", "2.2250738585072014e-308", "1.7976931348623157e308", "1.7976931348623159e308"),
    *("3.4028234663852886e38", "3.4028235677973366e38", "1.401298464324817e-45", "7e-46", "8.5e-46", "16777217.0"),
    *("0." + "0" * 300 + "1", "1" * 400, "0e999999999", "1e-999999999", "0." + "1" * 300, "1.5" + "0" * 30),
    *("1152921504606846977.5", "0.000001", "123456789012345.678", "99999999.995", "1e22", "1e23", "8.589973e9"),
]
_DATES = [
    *("2020-02-29", "1969-12-31", "0001-01-01", "9999-12-31", "2000-02-29", "1600-02-29", "2013-12-31"),
    *("2019-02-29", "1900-02-29", "2020-02-30", "2020-13-01", "2020-00-10", "2020-01-00", "2020-1-1", "20200101"),
    *("0000-01-01", "10000-01-01", "-001-01-01", "2020-01-01 ", " 2020-01-01", "2020/01/01", "2020-01-0\u0661", ""),
]
_CLOCKS = [
    *("T03:04:05", " 03:04:05", "T23:59:59", "T24:00:00", "T23:60:00", "T23:59:60", "t03:04:05", "T3:04:05", ""),
    *("T03:04", "T0304", "T03", "T03:04:05.", "T03:04:05,5", "T03:04:05.x", "  03:04:05", "T03:04:5"),
    *(f"T03:04:05.{'123456789'[:digits]}" for digits in range(1, 10)),
]
_ZONES = [
    *["Z"] * 4,
    *["+02:00", "-23:59", ""] * 2,
    "z",
    "+0200",
    "+02",
    "+24:00",
    "-00:00",
    "+2:00",
    "+02:60",
    " Z",
    "UTC",
]
_STRINGS = [
    *(
        "",
        "plain",
        "x" * 7,
        "y" * 8,
        "z" * 9,
        "a longer text without anything special in it",
        "é",
        "日本",
        "😀",
        "\x7f",
    ),
    *("5", "1.50", "-0", "+5", ".5", "5.", "1e3", "nan", " 1", "007", "12345678901234567890.5", "1e-999999999", "1_0"),
]
_RAW_STRINGS = [
    *(
        b'"\\u0041"',
        b'"\\u00e9x"',
        b'"\\ud83d\\ude00"',
        b'"\\uD83D\\uDE00 8 bytes"',
        b'"\\n\\t\\"\\\\\\/\\b\\f\\r"',
        b'"\\u0000"',
    ),
    *(
        b'"\\ud83d"',
        b'"\\ude00"',
        b'"\\ud83dx"',
        b'"\\ud83d\\u0041"',
        b'"\\u12"',
        b'"\\u12g4"',
        b'"\\x"',
        b'"\\',
        b'"\n"',
        b'"\x00"',
    ),
    *(
        b'"\x1f"',
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xc3"',
        b'"\xed\xa0\x80"',
        b'"\xed\x9f\xbf"',
        b'"\xf4\x90\x80\x80"',
        b'"\xe2\x82"',
    ),
    *(
        b'"\xf0\x8f\xbf\xbf"',
        b'"\xe0\x9f\xbf"',
        b'"\xef\xbb\xbf"',
        b'"\xef\xbf\xbf"',
        b'"open',
        b"'single'",
        b'"abcdefg\xc3\xa9"',
    ),
]
_BLANKS = [b"", b"", b"", b" ", b"\n", b"\t\r ", b"\x0b", b"\xc2\xa0", b"/**/"]
_ENDS = [b" ", b"\n", b",", b"}", b"null", b"{}", b"\x00", b"//"]


def draw_schema(random: Random) -> pa.Schema:
    """Draw columns; some have types or names that the compiled decoder does not know."""
    names = random.sample(NAMES, random.randint(1, 6))
    if random.random() < 0.02:
        names.append('quoted"name')
    return pa.schema([pa.field(name, _draw_type(random, 3)) for name in names])


def _draw_type(random: Random, levels: int) -> pa.DataType:
    chance = random.random()
    if levels and chance < 0.15:
        return pa.list_(_draw_type(random, levels - 1))
    if levels and chance < 0.3:
        names = random.sample(NAMES, random.randint(1, 3))
        return pa.struct([pa.field(name, _draw_type(random, levels - 1)) for name in names])
    if chance < 0.4:
        precision = random.randint(1, 38)
        return pa.decimal128(precision, random.randint(0, precision))
    return pa.timestamp("ms", tz="UTC") if chance < 0.405 else random.choice(_SIMPLE)


class Documents:
    """Draws documents of a schema.

    Args:
        columns: the schema.
        random: the generator.
        hostile: probability that a part of a document is none of the schema.
    """

    def __init__(self, columns: pa.Schema, random: Random, hostile: float) -> None:
        self._columns = columns
        self._random = random
        self._hostile = hostile
        self._absent = random.choice([0.0, 0.0, 0.3])  # a struct without the members that its record has, too

    def draw(self) -> bytes | None:
        """Draw one value of a record."""
        if self._now():
            return self._random.choice([None, b"", b"null", b"[]", b"5", b'"x"', b"\xef\xbb\xbf{}", b"{", b"\xff\xfe"])
        document = self._blank() + self._object(list(self._columns)) + self._blank()
        if self._now():
            document += self._random.choice(_ENDS)
        return self._mutated(document) if self._now() else document

    def _now(self) -> bool:
        return self._random.random() < self._hostile

    def _blank(self) -> bytes:
        if self._random.random() < 0.9:
            return b""
        return self._random.choice(_BLANKS if self._now() else _BLANKS[:6])

    def _mutated(self, document: bytes) -> bytes:
        at, skipped = self._random.randint(0, len(document)), self._random.randint(0, 3)
        return document[:at] + self._random.randbytes(self._random.randint(0, 3)) + document[at + skipped :]

    def _object(self, fields: list[pa.Field]) -> bytes:
        if self._now():
            self._random.shuffle(fields)
        if self._now():
            fields = fields[: self._random.randint(0, len(fields))]
        fields = [field for field in fields if self._random.random() >= self._absent]
        members = [(field.name, self._value(field.type)) for field in fields]
        if self._now():
            members.insert(self._random.randint(0, len(members)), (self._random.choice(NAMES), self._anything(3)))
        if fields and self._now():
            again = self._random.choice(fields)
            members.append((again.name, self._value(again.type)))
        comma = b"," + self._blank()
        text = comma.join(self._name(name) + self._blank() + b":" + self._blank() + value for name, value in members)
        return b"{" + self._blank() + text + (b"," if self._now() and self._now() else b"") + self._blank() + b"}"

    def _name(self, name: str) -> bytes:
        if self._now():
            return self._random.choice(
                [json.dumps(name), '"' + "".join(f"\\u{ord(one) & 0xFFFF:04x}" for one in name) + '"']
            ).encode()
        return b'"' + name.encode() + b'"'

    def _value(self, kind: pa.DataType) -> bytes:
        if self._random.random() < 0.05:
            return b"null"
        if self._now():
            return self._anything(3)
        if pa.types.is_struct(kind):
            return self._object(list(kind))
        if pa.types.is_list(kind):
            inner = [self._value(kind.value_type) for _ in range(self._random.randint(0, 3))]
            return b"[" + self._blank() + (b"," + self._blank()).join(inner) + self._blank() + b"]"
        return next(draw for check, draw in _DRAWS if check(kind))(self)

    def _anything(self, levels: int) -> bytes:
        if not levels or self._random.random() < 0.8:
            return self._random.choice(_ANY)(self)
        count = self._random.randint(0, 3)
        if self._random.random() < 0.05:
            return b"[" * (depth := self._random.choice([50, 70, 190, 210])) + b"]" * depth
        if self._random.random() < 0.5:
            return b"[" + b",".join(self._anything(levels - 1) for _ in range(count)) + b"]"
        members = (self._name(self._random.choice(NAMES)) + b":" + self._anything(levels - 1) for _ in range(count))
        return b"{" + b",".join(members) + b"}"

    def _pick(self, texts: Sequence[str]) -> bytes:
        return self._random.choice(texts).encode()

    def _truth(self) -> bytes:
        return self._random.choice([b"true", b"false", *[b"True", b"tru", b"falsey", b"nul"] * self._now()])

    def _integer(self) -> bytes:
        if self._random.random() < 0.7:
            return str(self._random.randint(-128, 127)).encode()
        return self._pick(_NO_NUMBERS if self._now() else _INTEGERS)

    def _float(self) -> bytes:
        chance = self._random.random()
        if chance < 0.3:
            return f"{self._random.uniform(-1000, 1000):.{self._random.randint(0, 20)}f}".encode()
        if chance < 0.7:
            (found,) = struct.unpack("<d", self._random.randbytes(8))
            return repr(found).encode() if math.isfinite(found) else b"0.5"
        if chance < 0.75:
            digits = self._random.randint(1, 10**19)
            return f"{digits}e{self._random.randint(-345, 310)}".encode()
        return self._pick(_NUMBERS) if chance < 0.9 else self._integer()

    def _decimal(self) -> bytes:
        number = (
            self._float()
            if self._random.random() < 0.2
            else f"{self._random.uniform(-99, 99):.{self._random.randint(0, 4)}f}".encode()
        )
        return b'"' + number + b'"' if self._random.random() < 0.5 else number

    def _date(self) -> bytes:
        if self._random.random() < 0.6:
            year, month, day = self._random.randint(1, 9999), self._random.randint(1, 12), self._random.randint(1, 28)
            return f'"{year:04}-{month:02}-{day:02}"'.encode()
        return b'"' + self._pick(_DATES) + b'"'

    def _time(self) -> bytes:
        date = self._date()[1:-1] if self._random.random() < 0.5 else b"2020-01-02"
        return b'"' + date + self._pick(_CLOCKS) + self._pick(_ZONES) + b'"'

    def _string(self) -> bytes:
        if self._random.random() < 0.2:
            return self._random.choice(_RAW_STRINGS if self._now() else _RAW_STRINGS[:6])
        text = self._pick(_STRINGS).decode()
        return json.dumps(text * self._random.randint(1, 3), ensure_ascii=self._random.random() < 0.5).encode()


_ANY: tuple[Callable[[Documents], bytes], ...] = (
    Documents._truth,
    Documents._integer,
    Documents._float,
    Documents._decimal,
    Documents._date,
    Documents._time,
    Documents._string,
    lambda one: one._random.choice([b"null", b"[]", b"{}", b"[null]", *one._random.choice([[], _RAW_STRINGS])]),
)
_DRAWS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Documents], bytes]], ...] = (
    (pa.types.is_boolean, Documents._truth),
    (pa.types.is_integer, Documents._integer),
    (pa.types.is_floating, Documents._float),
    (pa.types.is_decimal, Documents._decimal),
    (pa.types.is_date, Documents._date),
    (pa.types.is_timestamp, Documents._time),
    (pa.types.is_string, Documents._string),
)
