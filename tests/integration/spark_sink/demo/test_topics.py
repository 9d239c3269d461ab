"""Topics of the demo, on real brokers."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient

from spark_sink.demo.cluster import Cluster
from spark_sink.demo.topics import create_topics

pytestmark = pytest.mark.integration


def test_topics_that_are_made_by_several_at_once_are_there_for_all(cluster: Cluster) -> None:
    """Two `azimuth load` on an empty cluster: the second finds the topics that the first created."""
    make = partial(create_topics, partitions=2, replicas=1, config={})
    names = [f"at-once.{number}" for number in range(20)]
    with ThreadPoolExecutor(4) as at_once:
        list(at_once.map(lambda _: make(cluster.bootstrap_servers, names), range(4)))
    found = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=10).topics
    assert {name: len(found[name].partitions) for name in names if name in found} == dict.fromkeys(names, 2)
