"""Topics of the demo, as far as no broker is needed."""

from spark_sink.demo.topics import create_topics


def test_nothing_is_asked_for_when_all_topics_are_there() -> None:
    """`azimuth load` run again on the same cluster has none to create, which the client refuses to be asked for."""
    create_topics("127.0.0.1:1", [], partitions=3, replicas=3, config={})
