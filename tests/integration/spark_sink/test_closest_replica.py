"""Tasks fetch from the replica in their own zone (KIP-392), seen in the bytes that came from each broker."""

import contextlib
import errno
import os
import socket
import stat
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from spark_sink.demo.cluster import Cluster
from spark_sink.fetch.from_leaders.leader_fetching import LeaderFetching
from spark_sink.fetch.librdkafka import NativeConsumer
from spark_sink.fetch.range_reader import fetch
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fetch.received_files import Counts
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Range
from spark_sink.ranges.range_completion import TaskProgress
from tests.integration.spark_sink.conftest import close_idle_consumers

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_consumer_is_left")]
MakeTopic = Callable[..., str]

RECORDS, RECORD_BYTES = 2_000, 2_000
# tcpi_bytes_received of the kernel's struct tcp_info.
_RECEIVED = struct.Struct("=Q"), 128


def _socket(descriptor: int) -> socket.socket:
    """A second handle on an open connection. A descriptor of something else would stay open after the error."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise OSError(errno.ENOTSOCK, f"descriptor {descriptor} is no socket")
    return socket.socket(fileno=os.dup(descriptor))


def received(cluster: Cluster) -> Counter[str]:
    """Bytes that this process has received on its open connections, by the zone of the broker."""
    zones = {broker.port: broker.rack for broker in cluster.brokers}
    found: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        # What is no socket, was closed meanwhile, or is no connection tells nothing.
        with contextlib.suppress(OSError), _socket(int(entry.name)) as one:
            port = one.getpeername()[1] if one.family in {socket.AF_INET, socket.AF_INET6} else None
            if port in zones:
                form, offset = _RECEIVED
                (count,) = form.unpack_from(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), offset)
                found[zones[port]] += count
    return found


def test_bytes_come_from_the_zone_that_the_option_names(
    cluster: Cluster, admin: AdminClient, topic: MakeTopic, producer: Producer
) -> None:
    """Reading across zones is billed. Wherever the leader is, a task in a zone reads from that zone's replica.

    librdkafka's connections stay open, so the kernel still has their counts; those of the other way have been closed.
    """
    name = topic("zones", replication=3)
    for _ in range(RECORDS):
        producer.produce(name, value=os.urandom(RECORD_BYTES))
    producer.flush()
    leader = admin.list_topics(name, timeout=10).topics[name].partitions[0].leader
    zones = {broker.id: broker.rack for broker in cluster.brokers}
    for rack in [*zones.values(), None]:
        options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": name, "subscribe": name}
        options |= {"fetchRecordBatches": "false"}
        settings = SourceOptions.parse(options | ({"rack": rack} if rack else {})).fetch
        before = received(cluster)
        assert sum(batch.num_rows for batch in fetch([Range(name, 0, 0, RECORDS)], settings)) == RECORDS
        by_zone = received(cluster) - before
        wanted = rack or zones[leader]
        share = by_zone[wanted] / by_zone.total()
        print(f"rack={rack}, leader in {zones[leader]}: {dict(by_zone)} bytes, {share:.1%} from {wanted}")  # noqa: T201 -- shown with -s
        assert by_zone[wanted] > RECORDS * RECORD_BYTES
        assert share > 0.9
        close_idle_consumers()


@pytest.mark.parametrize("by_id", [False, True])
def test_record_batches_come_from_the_replica_in_the_zone(
    cluster: Cluster, topic: MakeTopic, producer: Producer, admin: AdminClient, *, by_id: bool
) -> None:
    """The leader names that replica in its answer, and the task asks there from then on."""
    name = topic("near", replication=3)
    for number in range(RECORDS):
        producer.produce(name, value=b"%d" % number)
    producer.flush()
    leader = admin.list_topics(name, timeout=10).topics[name].partitions[0].leader
    client = NativeConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": name})
    identities = client.topic_ids([name], 10) if by_id else {}
    client.close()
    for rack, broker in [*((one.rack, one.id) for one in cluster.brokers), ("", leader)]:
        progress, received = TaskProgress([Range(name, 0, 0, RECORDS)]), Counts()
        properties = {"bootstrap.servers": cluster.bootstrap_servers, "client.rack": rack}
        found = LeaderFetching(properties, progress, arrow_schema(headers=False), 1 << 20, received, None, identities)
        assert sum(batch.num_rows for batch in found.batches()) == RECORDS
        assert not progress.left
        assert {cell: count.records for cell, count in received.items()} == {(name, broker): RECORDS}
        assert found.topic_ids() == set(identities.items())
