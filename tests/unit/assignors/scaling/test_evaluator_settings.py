"""Settings of the evaluator: invalid settings are refused when the file is read."""

from pathlib import Path

import pytest

from assignors.errors import ScalingFileError
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.scaling.kafka_lag import KafkaLag
from assignors.scaling.recommendation_limits import CoolDown
from assignors.scaling.threshold_policy import Thresholds
from assignors.scaling.workers_topic_client import WorkersFeed, WorkersPublisher


def load(path: Path, top: str = "", pipeline: str = "", topics: str = "['t']") -> ScalingSettings:
    """Settings with these lines."""
    file = path / "scaling.toml"
    file.write_text(f"bootstrap_servers = 'b:1'\n{top}\n[pipelines.a]\ngroup = 'g'\ntopics = {topics}\n{pipeline}\n")
    return ScalingSettings.load(file)


@pytest.mark.parametrize(
    ("top", "pipeline", "named"),
    [
        ("interval_s = inf", "", "interval_s"),
        ("[agents.h]\ntopics = 3", "", "agents.h: no pipeline has this group; groups are ['g']"),
        ("interval_s = 1e300", "", "interval_s"),
        pytest.param("interval_s = " + "[" * 10_000, "", "is not TOML", id="deep"),
        ("interval_s = 60", "window_s = 100", "window_s=100 is less than two rounds"),
        ("alerts = ['http://[bad']", "", "http://"),
        ("store = ''", "", "store '': need 'memory'"),
        ("store = 'reddis://h'", "", "store 'reddis://h': need 'memory'"),
        ("store = 'reddis://u:p@h'", "", "store 'reddis://***@h': need 'memory'"),
        ("workers_redis = 'http://u:p@h'", "", "workers_redis 'http://***@h': need redis://"),
        ("", "worker_rate = 1e308\npolicy = 'keda'", "worker_rate"),
        ("", "worker_rate = 1e308\npolicy = 'thresholds'", "worker_rate"),
        ("", f"min_workers = {1 << 31}", "min_workers"),
        ("", f"workers = {10**30}", "workers"),
        ("workers_topic = ''", "", "workers_topic: no topic is named ''"),
        ("workers_topic = 'a b'", "", "workers_topic: no topic is named 'a b'"),
        ("workers_topic = '..'", "", "workers_topic: no topic is named '..'"),
        (f"workers_topic = '{'a' * 250}'", "", "need 1 to 249 letters"),
        ('workers_topic = "a\\u0000"', "", "workers_topic: no topic is named"),
        ("workers_topic = 3", "", "workers_topic"),
        ("", "slo = 300", "pipelines.a.slo: unknown setting"),
        ("", "slo_s = inf", "slo_s"),
        ("", "window_s = inf", "window_s"),
        ("", "cool_down_up_s = nan", "cool_down_up_s"),
        ("", "worker_rate = inf\npolicy = 'keda'", "worker_rate"),
        ("", "worker_rate = inf\npolicy = 'thresholds'", "worker_rate"),
        ("", "workers = 0", "workers"),
        ("", "workers = true", "pipelines.a.workers: true is not a number"),
        ("", "max_workers = true", "pipelines.a.max_workers: true is not a number"),
        ("", "worker_rate = false", "pipelines.a.worker_rate: false is not a number"),
        ("interval_s = true", "", "interval_s: true is not a number"),
        ("", "workers = 9\nmax_workers = 3", "workers=9 to begin with is above max_workers=3"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path: Path, top: str, pipeline: str, named: str) -> None:
    """In a sentence with the name of the setting, before anything is asked or written."""
    with pytest.raises(ScalingFileError, match=r"scaling\.toml|alert") as refused:
        load(tmp_path, top, pipeline)
    assert named in str(refused.value)


def test_a_pipeline_of_a_topic_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """Not reported as missing, round after round."""
    with pytest.raises(ScalingFileError, match=r"pipelines\.a\.topics\.1: no topic is named 'a b'"):
        load(tmp_path, topics="['a', 'a b']")


@pytest.mark.parametrize("client", [KafkaLag, WorkersFeed, WorkersPublisher])
def test_a_property_that_kafkas_client_does_not_know_is_named(
    client: type[KafkaLag | WorkersFeed | WorkersPublisher],
) -> None:
    """Not only by a trace of the client's own error."""
    with pytest.raises(ScalingFileError, match=r"no\.such\.property"):
        client({"bootstrap.servers": "b:1", "no.such.property": "1"})


def test_numbers_may_go_to_another_cluster_than_the_observed(tmp_path: Path) -> None:
    """Agents read the topic of their home cluster: topics of every other cluster could not be scaled."""
    file = tmp_path / "s.toml"
    pipeline = '[pipelines.p]\ngroup = "g"\ntopics = ["t"]\n'
    file.write_text('bootstrap_servers = "plant:1"\nkafka = {"client.id" = "x"}\n' + pipeline)
    here = ScalingSettings.load(file)
    assert here.workers_client == here.client == {"bootstrap.servers": "plant:1", "client.id": "x"}
    file.write_text(
        'bootstrap_servers = "plant:1"\nworkers_bootstrap_servers = "home:1"\n'
        'workers_kafka = {"client.id" = "y"}\n' + pipeline
    )
    there = ScalingSettings.load(file)
    assert there.workers_client == {"bootstrap.servers": "home:1", "client.id": "y"}
    assert there.client == {"bootstrap.servers": "plant:1"}
    file.write_text('bootstrap_servers = "plant:1"\nworkers_kafka = {"client.id" = "y"}\n' + pipeline)
    with pytest.raises(ScalingFileError, match="only with workers_bootstrap_servers"):
        ScalingSettings.load(file)


def test_every_figure_of_the_rule_of_thresholds_can_be_set(tmp_path: Path) -> None:
    """Also the pause between two changes, which otherwise is five minutes."""
    given = {
        "min_lag": 7,
        "max_lag": 70,
        "step": 2,
        "step_down": 3,
        "falling_s": 5.0,
        "trend_s": 90.0,
        "retention_begin": 0.1,
        "retention_part": 0.5,
        "retention_step": 9,
    }
    names = {"step": "threshold_step", "step_down": "threshold_step_down"}
    lines = [f"{names.get(name, name)} = {value}" for name, value in given.items()]
    text = "\n".join(["policy = 'thresholds'", *lines, "cool_down_up_s = 1\ncool_down_down_s = 2"])
    scaler = load(tmp_path, pipeline=text).pipelines["a"].scaler(3600.0)
    assert scaler.policy == Thresholds(**given, retention_s=3600.0)  # type: ignore[arg-type]  # numbers by name
    waits = [(limit.up_s, limit.down_s) for limit in scaler.limits if isinstance(limit, CoolDown)]
    assert waits == [(0.0, 0.0), (1.0, 2.0)]
    usual = load(tmp_path, pipeline="policy = 'thresholds'").pipelines["a"].scaler()
    assert next((one.up_s, one.down_s) for one in usual.limits if isinstance(one, CoolDown)) == (300.0, 300.0)


def test_news_go_through_the_redis_of_the_store_unless_another_is_named(tmp_path: Path) -> None:
    """Where Redis is there, followers read a change within a second without a further setting."""
    assert load(tmp_path).news is None
    assert load(tmp_path, "store = 'redis://h:1/0'").news == "redis://h:1/0"
    assert load(tmp_path, "store = 'redis://h:1/0'\nworkers_redis = 'redis://i:1/0'").news == "redis://i:1/0"
