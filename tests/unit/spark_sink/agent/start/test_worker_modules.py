"""The modules that are loaded before Spark's Python processes are forked."""

import subprocess
import sys

# In an interpreter of its own: this one has loaded everything.
JOIN = """
import sys
from spark_sink.agent.start.worker_modules import QUERY, TASKS, load
load((*TASKS, *QUERY))
before = set(sys.modules)
from spark_sink.options.source_options import SourceOptions
from spark_sink.source.kafka_source import KafkaGroupSource
options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.group.id": "g", "subscribe": "t"}
source = KafkaGroupSource(options)
reader = source.streamReader(source.schema())
from spark_sink.source.membership_session import MembershipSession
from spark_sink.source.group_membership import KafkaMembership
KafkaMembership(SourceOptions.parse(options))._member_of_classic(bool)
import assignors.pauses
assignors.pauses.PausesFeed
print(*sorted(set(sys.modules) - before))
"""


def test_a_reader_loads_nothing_when_it_joins() -> None:
    """Half a second of each query's start went into that; a renamed module must not bring it back."""
    loaded = subprocess.run([sys.executable, "-c", JOIN], capture_output=True, text=True, check=True)
    late = [
        one for one in loaded.stdout.split() if one.split(".")[0] in {"assignors", "kafka", "spark_sink", "pyspark"}
    ]
    assert late == []
