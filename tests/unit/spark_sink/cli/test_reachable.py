"""What a command asks the brokers before it starts."""

import pytest

from producer.testing import MockCluster
from spark_sink.cli import main


@pytest.mark.parametrize(("topic", "nearest"), [("flights.daed", "; did you mean 'flights.dead'?"), ("x", "")])
def test_a_missing_topic_of_dead_letters_is_one_sentence_before_any_table(
    topic: str, nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fleet has hundreds of tables, and each of them gave the sentence again."""
    with MockCluster(["az-a"]) as mock:
        mock.create("flights.dead", [1])
        servers = mock.bootstrap_servers
        with pytest.raises(SystemExit) as ended:
            main(["quarantine", "publish", "/nowhere/t", "--topic", topic, "--bootstrap-servers", servers])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    missing = f"there is no topic {topic!r} on {servers}, or this user may not describe it: create it first"
    assert said.err == f"azimuth: {missing}{nearest}\n"
