"""What a broker sees is asked of that broker."""

from producer.testing import MockCluster
from spark_sink.demo.topics import view_of


def test_a_broker_answers_for_itself_though_others_are_known() -> None:
    """Librdkafka asks any broker that it has heard of: one that knows better would speak for one that lags behind."""
    with MockCluster() as mock:
        mock.create("t", [1, 2, 3])
        for _ in range(5):
            for broker in mock.bootstrap_servers.split(","):
                assert str(view_of(broker).orig_broker_name).startswith(f"{broker}/")
