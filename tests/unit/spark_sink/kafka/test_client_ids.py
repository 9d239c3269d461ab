"""Every client that a command creates names itself, so that Kafka's tools and quotas can tell clients apart."""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import kafka
import pytest
from confluent_kafka.admin import AdminClient

from assignors.claims import PartitionClaims
from assignors.clients import LogOffsets, ask_brokers, log_offsets
from assignors.clients.client_creation import made
from assignors.clients.kafka_python_creation import connected
from assignors.comparison import live_group, read_group
from assignors.errors import ScalingFileError
from assignors.fleet import Lane
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.claimed import ClaimedSettings, job_process
from spark_sink.cli import _plan_producer
from spark_sink.fleet import agent_process
from spark_sink.fleet import lane_consumer as lane
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.reader_and_writer_threads import SourceReader
from spark_sink.fleet.reader_settings import ReaderParts, ReaderSettings
from spark_sink.kafka import group_lag
from spark_sink.options.source_options import SourceOptions

ROOT = Path(__file__).parents[4]
SERVERS = "localhost:9"
CLIENTS = {
    "AdminClient",
    "Consumer",
    "Producer",
    "KafkaAdminClient",
    "KafkaConsumer",
    "NativeConsumer",
    "KafkaProducer",
}
# Clients of a user's program, with its properties: the assignors' consumers, and what the producer asks.
OF_USERS = {
    "assignors/clients/broker_racks.py",
    "assignors/consumer/read_partitions.py",
    "assignors/member/broker_assigned_thread.py",
    "assignors/member/group_member.py",
    "producer/metadata_requests.py",
}
# Clients with properties from one of the settings below.
CONFIGURED = {
    "assignors/comparison/broker_assigned_group.py": "read_group",
    "assignors/clients/silent_brokers.py": "FleetSettings.source",
    "assignors/fleet/cluster_topics.py": "FleetSettings.source",
    "spark_sink/claimed/job_process.py": "job_process",
    "spark_sink/checks/broker_checks.py": "FleetSettings.kafka, AgentSettings.admin_options",
    "spark_sink/fetch/log_requests.py": "SourceOptions.kafka, job_process",
    "spark_sink/fetch/range_reader.py": "SourceOptions.kafka, job_process",
    "spark_sink/kafka/partition_offsets.py": "SourceOptions.kafka, job_process",
}


class Created(Exception):  # noqa: N818 -- no error: it ends a test at the client
    """The properties of a client."""

    def __init__(self, *given: Mapping[str, Any], **named: object) -> None:
        super().__init__()
        self.properties = {**(given[0] if given else {}), **named}


def refuse(*given: Mapping[str, Any], **named: object) -> None:
    """Raise the properties instead of creating a client."""
    raise Created(*given, **named)


def fleet(**more: str) -> FleetSettings:
    """A fleet with one source."""
    source = {"bootstrap_servers": SERVERS, "topics": ("t",), "kafka": more}
    return FleetSettings.model_validate({"agent": "one", "name": "f", "table": "/t", "sources": {"home": source}})


def lane_client(monkeypatch: pytest.MonkeyPatch, **more: str) -> Mapping[str, Any]:
    """The properties of a lane's consumer."""
    monkeypatch.setattr(lane, "Consumer", refuse)
    settings = ReaderSettings(agent="one", group="f", kafka={"home": fleet(**more).reading("home")})
    reader = SourceReader.__new__(SourceReader)  # without its threads
    reader._source, reader._settings = "home", settings
    reader._parts = ReaderParts(writer=None, ids=None, look_again=lambda: None)  # type: ignore[arg-type]  # not called
    with pytest.raises(Created) as found:
        reader._consumer(Lane("home", 3))
    return found.value.properties


@pytest.mark.parametrize("own", [False, True], ids=["default", "the user's"])
def test_an_agents_clients_name_agent_source_and_lane(monkeypatch: pytest.MonkeyPatch, *, own: bool) -> None:
    """One entry `rdkafka` for hundreds of clients says nothing; a client id that the user sets stays."""
    more = {"client.id": "mine"} if own else {}
    monkeypatch.setattr("assignors.fleet.kafka_membership.KafkaMembers", lambda _agent, given, *_: refuse(given))
    with pytest.raises(Created) as member:
        agent_process.members(fleet(**more))
    given = {"bootstrap_servers": SERVERS, "group": "g", "table": "/t", "checkpoint": "/c", "subscribe": "t"}
    sink = AgentSettings.model_validate({**given, "agent": "one", "kafka": more})
    found = {
        "azimuth.one.home.lane-3": lane_client(monkeypatch, **more)["client.id"],
        "azimuth.one.home": fleet(**more).kafka("home")["client.id"],
        "azimuth.one.membership": member.value.properties["client_id"],
        "azimuth.one": sink.admin_options()["client.id"],
    }
    assert found == {name: "mine" if own else name for name in found}
    assert SourceOptions.parse(sink.source_options()).kafka["client.id"] == ("mine" if own else "azimuth.one")


def test_a_claiming_jobs_clients_name_the_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jobs come and go; their owner is in the table of the claims, too."""
    monkeypatch.setattr(job_process, "admin", refuse)
    monkeypatch.setattr(PartitionClaims, "__init__", lambda *_, **__: None)
    monkeypatch.setattr(PartitionClaims, "close", lambda _: None)
    settings = ClaimedSettings(
        name="g",
        table="/t",
        database=f"sqlite:///{tmp_path}/claims.db",
        kafka={"bootstrap.servers": SERVERS},
        topics=("t",),
        owner="job-1",
    )
    with pytest.raises(Created) as found:
        job_process.build(settings)
    assert found.value.properties["client.id"] == "azimuth.job-1.g"


def lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of `azimuth lag`."""
    monkeypatch.setattr(group_lag, "AdminClient", refuse)
    group_lag.admin({"bootstrap.servers": SERVERS})


def offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """That asks for offsets."""
    monkeypatch.setattr(log_offsets, "KafkaConsumer", refuse)
    LogOffsets.connect({"bootstrap_servers": SERVERS})


def group(monkeypatch: pytest.MonkeyPatch) -> None:
    """That describes a group."""
    monkeypatch.setattr(live_group, "KafkaAdminClient", refuse)
    read_group(SERVERS, "g")


def brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """That asks why brokers do not answer."""
    monkeypatch.setattr(confluent_kafka.admin, "AdminClient", refuse)
    ask_brokers({"bootstrap.servers": SERVERS}, 1)


def forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of `azimuth plan --producer`."""
    monkeypatch.setattr(_plan_producer, "AdminClient", refuse)
    _plan_producer.producer_forecasts({"bootstrap.servers": SERVERS}, "a", "t")


def autoscale(_: pytest.MonkeyPatch) -> None:
    """Of `azimuth autoscale`."""
    made(refuse, {"bootstrap.servers": SERVERS}, client="autoscale", refusal=ScalingFileError)


ASKING: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "spark_sink/kafka/group_lag.py": lag,
    "assignors/clients/log_offsets.py": offsets,
    "assignors/comparison/live_group.py": group,
    "assignors/clients/unreachable_causes.py": brokers,
    "spark_sink/cli/_plan_producer.py": forecast,
    "assignors/clients/client_creation.py": autoscale,
}


@pytest.mark.parametrize("place", ASKING)
def test_a_commands_clients_have_the_projects_name(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay for seconds, but a broker's log names them."""
    with pytest.raises(Created) as found:
        ASKING[place](monkeypatch)
    properties = found.value.properties
    assert str(properties.get("client.id", properties.get("client_id"))).startswith("azimuth")


def test_no_client_is_left_out() -> None:
    """A new place that creates a client has to be added to one of the tables above."""
    agents = {"spark_sink/fleet/lane_consumer.py", "assignors/fleet/kafka_membership.py"}
    known = {*ASKING, *OF_USERS, *CONFIGURED, *agents} - {"assignors/clients/client_creation.py"}
    assert creators() == known


def creators() -> set[str]:
    """The modules that call a client's class; the demo has clients of its own."""
    found = set()
    for package in ("assignors", "producer", "spark_sink"):
        for file in (ROOT / package).rglob("*.py"):
            place = file.relative_to(ROOT).as_posix()
            calls = [one for one in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(one, ast.Call)]
            names = {name.id for one in calls if isinstance(name := _class(one), ast.Name)}
            if names & CLIENTS and not place.startswith("spark_sink/demo/"):
                found.add(place)
    return found


def _class(call: ast.Call) -> ast.expr:
    """What is called, or the class that `connected` calls."""
    return call.args[0] if isinstance(call.func, ast.Name) and call.func.id == connected.__name__ else call.func


def test_the_clients_classes_are_the_libraries() -> None:
    """A renamed class would empty the search above."""
    assert {AdminClient.__name__, kafka.KafkaConsumer.__name__, kafka.KafkaAdminClient.__name__} <= CLIENTS
