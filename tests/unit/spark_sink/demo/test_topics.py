"""Topics of the demo, as far as no real broker is needed."""

from producer.testing import MockCluster
from spark_sink.demo.topics import create_topics, view_of


def test_nothing_is_asked_for_when_all_topics_are_there() -> None:
    """`azimuth load` run again on the same cluster has none to create, which the client refuses to be asked for."""
    create_topics("127.0.0.1:1", [], partitions=3, replicas=3, config={})


def test_a_broker_answers_for_itself_though_others_are_known() -> None:
    """The client may send a request to any known broker, so another broker could answer for one with old metadata."""
    with MockCluster() as mock:
        mock.create("t", [1, 2, 3])
        for _ in range(5):
            for broker in mock.bootstrap_servers.split(","):
                assert str(view_of(broker).orig_broker_name).startswith(f"{broker}/")
