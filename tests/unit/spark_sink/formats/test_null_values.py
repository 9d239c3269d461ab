"""A record without a value is bad, or a row of its own: a tombstone says that its key is gone."""

import base64
import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from spark_sink.formats import Decoder, JsonDecoder, ProtobufDecoder, Registry, VariantDecoder, decode_batch
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.registry_decoders import AvroDecoder, given_avro
from spark_sink.formats.schema_registry import Registered
from tests.unit.spark_sink.formats.examples import raw

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
PROTOBUF = descriptor_pb2.FileDescriptorProto(
    name="r.proto",
    syntax="proto3",
    message_type=[{"name": "R", "field": [{"name": "id", "number": 1, "label": 1, "type": 3}]}],
)
DECODERS: dict[str, Callable[[], Decoder]] = {
    "json": lambda: JsonDecoder(pa.schema([("id", pa.int64())]), "rescue"),
    "variant": VariantDecoder,
    "avro": lambda: AvroDecoder(Registry({"url": "http://none"}), given_avro(AVRO), "rescue"),
    "protobuf": lambda: ProtobufDecoder(
        Registry({"url": "http://none"}),
        Registered(base64.b64encode(PROTOBUF.SerializeToString()).decode(), {}),
        unknown="rescue",
    ),
}


@pytest.fixture(params=DECODERS)
def decoder(request: pytest.FixtureRequest) -> Decoder:
    """A decoder of each kind; those of a registry need no schema for a value that is not there."""
    return DECODERS[request.param]()


def test_a_tombstone_is_bad_unless_it_is_kept(decoder: Decoder) -> None:
    """The default keeps tables free of rows without values."""
    (reason,) = decode_batch(raw([None]), decoder).column(COLUMN).to_pylist()
    assert reason["error_class"] == "NullValue"


def test_a_kept_tombstone_is_a_row_with_its_key_and_bad_values_stay_bad(decoder: Decoder) -> None:
    """`keep` speaks of records without a value only; the tasks get the decoder pickled."""
    decoder.nulls = "keep"
    rows = decode_batch(raw([None, b"poison", None]), pickle.loads(pickle.dumps(decoder)))  # noqa: S301 -- our own
    reasons = rows.column(COLUMN).to_pylist()
    assert (reasons[0], reasons[2]) == (None, None)
    assert reasons[1] is not None
    assert rows.column("key").to_pylist() == [b"k"] * 3
    assert all(rows.column(name).null_count == 3 for name in decoder.columns.names)


def test_other_columns_keep_the_policy() -> None:
    """With the table's columns each batch has a decoder of its own."""
    made = JsonDecoder(pa.schema([("id", pa.int64())]))
    made.nulls = "keep"
    assert made.with_columns(pa.schema([("name", pa.string())])).nulls == "keep"
