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


def test_deletion_vectors_are_refused_before_a_table_has_them() -> None:
    """The sink would write a table that no rewind can read."""
    with pytest.raises(OptionError, match="cannot read deletion vectors"):
        SinkOptions.parse({**BASE, "tableProperty.delta.enableDeletionVectors": "True"})
    SinkOptions.parse({**BASE, "tableProperty.delta.enableDeletionVectors": "false"})
