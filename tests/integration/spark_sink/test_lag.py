"""`azimuth lag` on real logs: what it says is what is left to read, and what it cannot know it does not leave out."""

import json
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from spark_sink.cli import main
from spark_sink.demo.cluster import Cluster
from spark_sink.errors import LagError
from spark_sink.kafka.group_lag import admin as lag_client
from spark_sink.kafka.group_lag import behind
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink import commit_by_compare_and_swap
from tests.table_kinds import ADDRESS, SCHEMA, kind_of, warehouse

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., str]


def commit(cluster: Cluster, group: str, positions: dict[tuple[str, int], int]) -> None:
    """Commit as a consumer of the group would."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[KafkaPartition(*key, at) for key, at in positions.items()], asynchronous=False)
    consumer.close()


def fill(producer: Producer, topic: str, partition: int, count: int) -> None:
    """Write so many records."""
    for number in range(count):
        producer.produce(topic, value=str(number), partition=partition)
    producer.flush()


def main_returns(*arguments: str) -> None:
    """Run the command line to a good end."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert not ended.value.code


def test_lag_is_what_is_left_to_read(
    cluster: Cluster, topic: MakeTopic, producer: Producer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over partitions and topics; a partition without a position counts for nothing."""
    group, one, two = uuid.uuid4().hex, topic("one", partitions=3), topic("two")
    fill(producer, one, 0, 10)
    fill(producer, one, 1, 30)
    fill(producer, one, 2, 99)
    fill(producer, two, 0, 5)
    commit(cluster, group, {(one, 0): 4, (one, 1): 10, (two, 0): 5})
    main_returns("lag", "--bootstrap-servers", cluster.bootstrap_servers, "--group", group, "--json")
    assert json.loads(capsys.readouterr().out) == [
        {"topic": one, "partitions": 2, "lag_records": 26, "worst": [1, 20], "paused": False},
        {"topic": two, "partitions": 1, "lag_records": 0, "worst": [0, 0], "paused": False},
    ]


def _land(format_: str, root: Path, ends: Mapping[tuple[str, int], int]) -> None:
    """Commit the first records of partitions to a table of the group `g`."""
    kind = kind_of(format_, root)
    table = kind.make()
    table.create(SCHEMA)
    for (name, number), end in ends.items():
        files = [kind.write(TopicPartition(name, number), range(end))]
        offset = Offset.of([Range(name, number, 0, end)])
        commit_by_compare_and_swap.commit(
            table, commit_by_compare_and_swap.Batch(offset=offset, files=files, schema=SCHEMA)
        )


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_lag_by_a_table_counts_what_the_table_lacks(  # noqa: PLR0913, PLR0917 -- fixtures
    cluster: Cluster,
    topic: MakeTopic,
    producer: Producer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    format_: str,
) -> None:
    """The group has committed nothing to Kafka. Of one table, and of those of a fleet, whose other source has none."""
    one, two = topic("one", partitions=2), topic("two")
    fill(producer, one, 0, 10)
    fill(producer, one, 1, 30)
    fill(producer, two, 0, 5)
    _land(format_, tmp_path, {(one, 0): 4, (one, 1): 10, (two, 0): 5})
    expected = [
        {"topic": one, "partitions": 2, "lag_records": 26, "worst": [1, 20], "paused": False},
        {"topic": two, "partitions": 1, "lag_records": 0, "worst": [0, 0], "paused": False},
    ]
    given = [word for name, value in warehouse(tmp_path).items() for word in ("--storage", f"{name}={value}")]
    table = ["--table", ADDRESS, *given] if format_ == "iceberg" else ["--table", f"{tmp_path}/table"]
    main_returns("lag", "--bootstrap-servers", cluster.bootstrap_servers, "--group", "g", *table, "--json")
    assert json.loads(capsys.readouterr().out) == expected
    file = tmp_path / "fleet.toml"
    file.write_text(_fleet(format_, tmp_path, cluster))
    with pytest.raises(SystemExit) as ended:
        main(["lag", "--fleet", str(file), "--json"])
    assert ended.value.code == 2
    found, lacking = json.loads(capsys.readouterr().out)[:-1], "holds no position of group 'g'"
    assert found == [{"source": "table" if format_ == "delta" else "events", **each} for each in expected]
    with pytest.raises(SystemExit):
        main(["lag", "--fleet", str(file)])
    said = capsys.readouterr()
    assert lacking in said.err
    assert said.out.splitlines()[-1] == "fleet 'g': 26 records behind, 2 sources; the lag of 1 is unknown"


def _fleet(format_: str, root: Path, cluster: Cluster) -> str:
    table = f'table = "{root}/{{cluster}}"\n'
    if format_ == "iceberg":
        place = warehouse(root)["catalog.warehouse"]
        table = f'table = "lake.raw.{{cluster}}"\ntable_format = "iceberg"\ncatalog = {{ warehouse = "{place}" }}\n'
    sources = "".join(
        f'[sources.{name}]\nbootstrap_servers = "{cluster.bootstrap_servers}"\npattern = "{name}[.].*"\n'
        for name in ("table" if format_ == "delta" else "events", "nothing")
    )
    return f'name = "g"\n{table}{sources}'


def test_a_topic_that_is_gone_is_left_out_at_once(
    cluster: Cluster, topic: MakeTopic, producer: Producer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Groups keep offsets of deleted topics for a week: the command does not wait for a leader that never comes."""
    group, there = uuid.uuid4().hex, topic("there")
    fill(producer, there, 0, 3)
    commit(cluster, group, {(there, 0): 1})
    client = lag_client({"bootstrap.servers": cluster.bootstrap_servers})
    begun = time.monotonic()
    found = behind(
        client,
        {"bootstrap.servers": cluster.bootstrap_servers},
        {TopicPartition(there, 0): 1, TopicPartition(f"{there}-gone", 0): 1, TopicPartition(there, 7): 1},
        timeout_s=60.0,
    )
    assert [(one.topic, one.partitions, one.lag_records) for one in found] == [(there, 1, 2)]
    assert time.monotonic() - begun < 30
    main_returns("lag", "--bootstrap-servers", cluster.bootstrap_servers, "--group", group)
    assert f"{group}: 2 records behind, in 1 of 1 topics" in capsys.readouterr().out


@pytest.mark.slow
def test_a_partition_without_a_leader_is_an_error_and_no_smaller_sum(
    cluster: Cluster, topic: MakeTopic, producer: Producer, admin: AdminClient
) -> None:
    """Its broker is dead and has the only replica: the lag of the group is unknown."""
    alone = topic("alone", partitions=1, replication=1)
    fill(producer, alone, 0, 3)
    leader = admin.list_topics(alone).topics[alone].partitions[0].leader
    kafka = {"bootstrap.servers": cluster.bootstrap_servers}
    client = lag_client(kafka)
    cluster.kill(leader)
    try:
        with pytest.raises(LagError, match=rf"{alone}/0: no leader has answered for its end in 5 s; ask again"):
            behind(client, kafka, {TopicPartition(alone, 0): 0}, timeout_s=5.0)
    finally:
        cluster.start(leader)
    assert [one.lag_records for one in behind(client, kafka, {TopicPartition(alone, 0): 0})] == [3]


def test_a_group_that_never_committed_is_an_answer_also_where_no_group_did(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a fresh cluster this question makes the coordinator; librdkafka's way of asking could end the process."""
    group = uuid.uuid4().hex
    with pytest.raises(SystemExit) as ended:
        main(["lag", "--bootstrap-servers", cluster.bootstrap_servers, "--group", group])
    assert ended.value.code == 2
    assert (
        f"group '{group}' has committed no offsets on this cluster: check --group, or wait for its first commit; "
        "a fleet's lag shows with --fleet FILE, that of jobs with claims with --table" in capsys.readouterr().err
    )
