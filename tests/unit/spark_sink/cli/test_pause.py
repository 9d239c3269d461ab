"""`azimuth pause` and `azimuth resume`, with a cluster that is a set of names."""

from collections.abc import Mapping
from typing import Any

import pytest

from assignors.pauses import Pause, PausedTopic
from spark_sink.cli import pause as module
from spark_sink.errors import OptionError

PAUSE = Pause(at_ms=0, by="ops@h", reason="the table moves")


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PausedTopic, Pause | None]]:
    """The changes that a command publishes."""
    made: list[tuple[PausedTopic, Pause | None]] = []

    class Publisher:
        def __init__(self, kafka: Mapping[str, Any]) -> None:
            assert kafka is not None

        def publish(self, name: PausedTopic, pause: Pause | None) -> None:
            made.append((name, pause))

    monkeypatch.setattr("assignors.pauses.PausesPublisher", Publisher)
    states = {
        "eu": module._State(frozenset({"a", "b"}), {"old": PAUSE, "b": PAUSE}),
        "us": module._State(frozenset({"b", "c"}), {}),
    }
    monkeypatch.setattr(module, "_state", lambda cluster: states[cluster.source])
    return made


CLUSTERS = [module._Cluster("eu", "g", {}), module._Cluster("us", "g", {})]


def test_only_what_is_not_yet_so_is_changed(
    changes: list[tuple[PausedTopic, Pause | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    """A command may be repeated, and the first pause keeps its time and its reason."""
    module._change(["a", "eu/b", "a"], CLUSTERS, PAUSE, as_json=False)
    assert changes == [(PausedTopic("g", "a"), PAUSE)]
    assert capsys.readouterr().out.splitlines() == [
        "eu/a: its readers stop within seconds",
        "eu/b: it is paused since 1970-01-01 00:00:00Z by ops@h: the table moves",
    ]
    module._change(["c", "old"], CLUSTERS, None, as_json=False)
    assert changes[1:] == [(PausedTopic("g", "old"), None)], "a topic that was deleted while it was paused"
    assert capsys.readouterr().out.splitlines()[0] == "us/c: it was not paused"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("d", "there is no topic 'd' on eu, us"),
        ("asia/a", "there is no topic 'asia/a' on eu, us"),
        ("eu/c", "there is no topic 'eu/c' on eu"),
        ("b", "topic 'b' is on several clusters: name it eu/b"),
    ],
)
def test_a_wrong_name_is_one_sentence_and_changes_nothing(
    changes: list[tuple[PausedTopic, Pause | None]], name: str, sentence: str
) -> None:
    """Also nothing of the topics before it."""
    with pytest.raises(OptionError) as refused:
        module._change(["a", name], CLUSTERS, PAUSE, as_json=False)
    assert str(refused.value) == sentence
    assert not changes
