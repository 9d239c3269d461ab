"""Agents with Spark whose object store is overloaded: no record is lost or doubled, good or bad."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.spark_agent import cause, start
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.faulty_proxy import (
    CLOSED,
    CUT,
    DOCUMENT,
    EMPTY,
    INTERNAL,
    LATE,
    RESET,
    SLOW_DOWN,
    STALE,
)
from tests.integration.spark_sink.faulty_store import faulty_store
from tests.integration.spark_sink.killed_agent import Place
from tests.integration.spark_sink.small_servers import BUCKET, bucket_at, small_aws
from tests.table_kinds import Bucket

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

RECORDS, STARTS = 60, 20
KINDS = {SLOW_DOWN: 2, CUT: 2, CLOSED: 2, LATE: 0.5, INTERNAL: 2, RESET: 3, DOCUMENT: 4, EMPTY: 0.5, STALE: 2}


def _place(format_: str, bucket: Bucket, root: Path) -> Place:
    if format_ == "delta":
        return Place(format="delta", table=f"{bucket.address}/table", options=bucket.delta)
    options = {name.removeprefix("catalog."): value for name, value in bucket.iceberg.items()}
    options |= {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": bucket.address}
    return Place(format="iceberg", table="lake.raw.events", options=options)


def _produce(servers: str, topic: str) -> None:
    """Write records to both partitions; each eleventh cannot be decoded."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
    for number in range(RECORDS):
        producer.produce(topic, b"{" if number % 11 == 3 else json.dumps({"n": number}).encode(), partition=number % 2)
    assert producer.flush(60) == 0


def _run(spark: SparkSession, settings: AgentSettings) -> str:
    """Run the agent's query, and return the sentence with which it ends; empty if it has caught up."""
    try:
        assert start(spark, settings).awaitTermination(120)
    except StreamingQueryException as error:
        return cause(str(error))
    return ""


@pytest.mark.parametrize(("format_", "landing"), [("delta", "rows"), ("iceberg", "direct")])
def test_an_agent_in_a_storm_of_wrong_answers_writes_every_record_once(  # noqa: PLR0913, PLR0917 -- fixtures and cases
    spark: SparkSession,
    cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    topic: Callable[..., str],
    format_: str,
    landing: str,
) -> None:
    """An agent that failed, with a sentence, starts again from its checkpoint, until it has caught up."""
    folder: Callable[[str], Path] = tmp_path_factory.mktemp
    root, name, bucket = folder("agent"), topic("storm", partitions=2), f"s3://{BUCKET}/{uuid.uuid4().hex}"
    _produce(cluster.bootstrap_servers, name)
    with small_aws(folder("s3") / "log") as aws, faulty_store(aws, folder("proxy") / "log") as proxy:
        stormy = _place(format_, bucket_at(bucket, proxy.address, "secret", timeout_s=1), root)
        settings = AgentSettings.load(
            None,
            {
                "bootstrap_servers": cluster.bootstrap_servers,
                "group": name,
                "subscribe": name,
                "checkpoint": str(root / "checkpoint"),
                "agent": "one",
                "trigger": "available-now",
                "landing": landing,
                "max_offsets_per_trigger": 16,
                "table": stormy.table,
                "table_format": format_,
                "storage" if format_ == "delta" else "catalog": dict(stormy.options),
                "kafka": {"session.timeout.ms": "6000"},
                "source": {"valueFormat": "json", "valueSchema": '{"n": "bigint"}'},
                "sink": {"compactEvery": "2"},
            },
        )
        proxy.set({"share": 0.08, "seed": 1, "late_s": 1.5, "kinds": KINDS})
        said = [_run(spark, settings)]
        while said[-1]:
            assert len(said) < STARTS, said
            said.append(_run(spark, settings))
        assert not [one for one in said if "the log above" in one]
        direct = _place(format_, bucket_at(bucket, aws, "secret"), root)
        rows = direct.rows()
        assert (len(rows), set(rows.values())) == (RECORDS, {1})
        assert verify(direct.address, name, direct.storage).ok
