"""Records that keep coming, and a ledger of those that Kafka has acknowledged."""

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import pyarrow as pa
from confluent_kafka import KafkaError, Message, Producer

from tests.counted_records import SETTINGS

POISON = 0.03
_BROKEN = (None, b"", b"{", b"null", b"[1]", b"\xff\xfe", b'{"number":1}x')
_MISFITS = (b'{"number":"one"}', b'{"number":1.5}', b'{"amount":{}}', b'{"place":7}')

LEDGER = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("home", pa.string()),
        ("number", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.float64()),
        ("zone", pa.string()),
        ("coupon", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What values look like.

    Attributes:
        decoded: JSON, of which a part is poison; else any bytes.
        misfits: some of the poison is JSON of the wrong types.
        unknown_is_bad: a record with the field that comes in mid-run belongs into the quarantine.
    """

    decoded: bool = False
    misfits: bool = True
    unknown_is_bad: bool = False

    def make(self, draw: random.Random, number: int, *, coupon: bool) -> tuple[bytes | None, dict[str, object]]:
        """One value, and what the ledger has to say of it."""
        if not self.decoded:
            value = None if draw.random() < POISON else f"{number}:{draw.random()}".encode()
            return value, {"home": "table"}
        if draw.random() < POISON:
            return draw.choice(_BROKEN + (_MISFITS if self.misfits else ())), {"home": "quarantine"}
        told: dict[str, object] = {"number": number, "name": f"né {number}", "amount": number + 0.25}
        fields = {**told, "place": {"zone": f"z{number % 3}"}}
        told["zone"] = f"z{number % 3}"
        if coupon and draw.random() < 0.5:
            fields["coupon"] = told["coupon"] = f"c{number}"
        home = "quarantine" if "coupon" in fields and self.unknown_is_bad else "table"
        return json.dumps(fields).encode(), {**told, "home": home}


@dataclass
class Stream:
    """Writes to every partition until the block ends.

    Args:
        servers: of the cluster.
        topics: names.
        partitions: of each topic.
        values: what values look like.
        seed: of the values.
        records: written to each partition, ten times a second.
    """

    servers: str
    topics: Sequence[str]
    partitions: int
    values: Values
    seed: int
    records: int = 5
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._producer = Producer({"bootstrap.servers": self.servers, **SETTINGS})
        self._rows: list[dict[str, object]] = []
        self._ended, self._changed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        left = self._producer.flush(120)
        assert not left
        assert not self.refused, self.refused[:3]

    def change(self) -> None:
        """From now on half of the records have a field that none had before."""
        self._changed.set()

    @property
    def acknowledged(self) -> int:
        """Records that Kafka has acknowledged."""
        return len(self._rows)

    def ledger(self) -> pa.Table:
        """Each record that Kafka has acknowledged, and where it belongs."""
        return pa.Table.from_pylist(self._rows, LEDGER)

    def _run(self) -> None:
        draw, number = random.Random(self.seed), 0
        while not self._ended.wait(0.1):
            for topic in self.topics:
                for partition in range(self.partitions):
                    for _ in range(self.records):
                        self._send(topic, partition, number, draw)
                        number += 1
            self._producer.poll(0)

    def _send(self, topic: str, partition: int, number: int, draw: random.Random) -> None:
        key = str(number).encode()
        value, told = self.values.make(draw, number, coupon=self._changed.is_set())
        row = {"topic": topic, "partition": partition, "key": key, "value": value, **told}
        done = partial(self._delivered, row)
        self._producer.produce(topic, value, key, partition, headers=[("n", key)], on_delivery=done)

    def _delivered(self, row: dict[str, object], error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            self._rows.append({**row, "offset": message.offset()})
