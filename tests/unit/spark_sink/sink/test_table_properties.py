"""Properties of new tables that the sink's own commands must be able to live with."""

import pytest

from spark_sink.errors import OptionError
from spark_sink.sink.sink_options import SinkOptions

BASE = {"path": "t", "kafka.group.id": "g", "checkpointLocation": "c"}


def test_a_quarantine_is_never_append_only() -> None:
    """A rewind removes what the agents read again; in an append-only quarantine it failed at each repetition."""
    given = {"tableProperty.delta.appendOnly": "true", "tableProperty.delta.logRetentionDuration": "interval 9 days"}
    options = SinkOptions.parse({**BASE, **given})
    assert options.table.properties["delta.appendOnly"] == "true"
    assert options.quarantine.properties == {"delta.logRetentionDuration": "interval 9 days"}


def test_a_property_has_the_case_of_delta() -> None:
    """Spark passes names of options in lower case; delta-rs refused to create a table with such a property."""
    given = {"tableproperty.delta.logretentionduration": "interval 7 days", "tableproperty.delta.appendonly": "true"}
    options = SinkOptions.parse({**BASE, **given})
    assert options.table.properties == {"delta.logRetentionDuration": "interval 7 days", "delta.appendOnly": "true"}
    assert options.quarantine.properties == {"delta.logRetentionDuration": "interval 7 days"}
    with pytest.raises(OptionError, match="cannot read deletion vectors"):
        SinkOptions.parse({**BASE, "tableproperty.delta.enabledeletionvectors": "true"})


def test_deletion_vectors_are_refused_before_a_table_has_them() -> None:
    """The sink would write a table that no rewind can read."""
    with pytest.raises(OptionError, match="cannot read deletion vectors"):
        SinkOptions.parse({**BASE, "tableProperty.delta.enableDeletionVectors": "True"})
    SinkOptions.parse({**BASE, "tableProperty.delta.enableDeletionVectors": "false"})


@pytest.mark.parametrize(
    ("given", "codec"), [("ZSTD", "zstd"), ("uncompressed", "none"), ("none", "none"), ("lz4", "lz4")]
)
def test_a_compression_has_the_words_of_both_engines(given: str, codec: str) -> None:
    """Iceberg and Spark say `uncompressed`, Arrow says `none`."""
    assert SinkOptions.parse({**BASE, "compression": given}).table.layout.compression == codec


@pytest.mark.parametrize("given", ["foo", "", "lzo"])
def test_an_unknown_compression_is_refused_before_the_query_starts(given: str) -> None:
    """It was an error of Arrow in each task."""
    with pytest.raises(
        OptionError, match=r"option 'compression': .* need one of zstd, snappy, gzip, brotli, lz4, none"
    ):
        SinkOptions.parse({**BASE, "compression": given})
