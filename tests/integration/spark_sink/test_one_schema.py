"""Two agents on real brokers, of which one restarts: both write a new field the same way."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_sink import positions
from spark_sink.demo.cluster import Cluster
from spark_sink.formats.unknown_policy import COLUMN
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.tied import launch

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PARTITIONS = 4


def _until(reached: Callable[[], bool], agents: dict[str, Popen[bytes]], folder: Path) -> None:
    deadline = time.monotonic() + 240
    while not reached():
        for name, agent in agents.items():
            assert agent.poll() is None, (folder / f"{name}.log").read_text()[-3000:]
        assert time.monotonic() < deadline, "the condition was not reached in time"
        time.sleep(0.1)


def _committers(table: Path, after: int = -1) -> set[str]:
    """The agents that have committed rows after a version of the table."""
    if not DeltaTable.is_deltatable(str(table)):
        return set()
    notes = [one.get("kafka-azimuth") or {} for one in DeltaTable(table).history() if one["version"] > after]
    return {note["agent"] for note in notes if note.get("rows")}


@pytest.mark.parametrize("policy", ["rescue", "evolve"])
def test_a_restart_changes_nothing_in_the_form_of_the_rows(
    cluster: Cluster, topic: Callable[..., str], producer: Producer, tmp_path: Path, policy: str
) -> None:
    """`rescue` has a new field in `_rescued` of every row; under `evolve` a running agent takes its column, too."""
    name, table = topic("coupons", PARTITIONS), tmp_path / "table"
    sent = 0

    def send(records: int, *, coupon: bool) -> int:
        nonlocal sent
        for number in range(sent, sent + records):
            value = {"id": number} | ({"coupon": f"c{number}"} if coupon else {})
            producer.produce(name, value=json.dumps(value), partition=number % PARTITIONS)
        producer.flush()
        sent += records
        return sent

    def start(agent: str, checkpoint: str) -> Popen[bytes]:
        command = [sys.executable, "-m", "spark_sink", "sink", "--bootstrap-servers", cluster.bootstrap_servers]
        command += ["--group", name, "--table", str(table), "--checkpoint", str(tmp_path / checkpoint)]
        command += ["--subscribe", name, "--agent", agent, "--master", "local[1]", "--trigger", "500 milliseconds"]
        command += ["--source", "valueFormat=json", "--source", f"unknownFields={policy}", "--sink", "mergeSchema=true"]
        return launch(command, tmp_path / f"{agent}.log")

    def landed() -> bool:
        return sum(positions(str(table), name).values()) == sent

    send(40, coupon=False)
    agents = {agent: start(agent, agent) for agent in ("one", "two")}
    try:
        _until(lambda: _committers(table) == {"one", "two"} or not send(4, coupon=False), agents, tmp_path)
        send(200, coupon=True)
        _until(landed, agents, tmp_path)
        agents["two"].terminate()
        assert agents["two"].wait(60) == 0
        ended = DeltaTable(table).version()
        agents["two"] = start("two", "two")
        _until(lambda: _committers(table, ended) == {"one", "two"} or not send(4, coupon=True), agents, tmp_path)
        settled = send(200, coupon=True)
        _until(landed, agents, tmp_path)
    finally:
        for one in agents.values():
            one.terminate()
        for one in agents.values():
            one.wait(60)
    assert verify(str(table)).ok
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(sent))
    last = [(row.get("coupon"), row[COLUMN]) for row in rows if row["id"] >= settled - 200]
    if policy == "rescue":
        assert "coupon" not in rows[0]
        assert all(json.loads(rescued) and coupon is None for coupon, rescued in last)
    else:
        assert all(coupon is not None and rescued is None for coupon, rescued in last)
