"""The state of the whole fleet, as one agent sees it; only requests of its page cost anything."""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from assignors.fleet import FleetAgent, FleetTopic
from spark_sink.fleet.background_values import BackgroundValue
from spark_sink.fleet.fleet_lag import FleetLag, TopicFigures, summary
from spark_sink.fleet.fleet_settings import FleetSettings

_EVERY_S = 5.0


class WholeFleet:
    """The agents, the topics, their readers and their lag.

    Args:
        settings: settings of the fleet.
        agent: the agent that serves the page.
    """

    def __init__(self, settings: FleetSettings, agent: FleetAgent) -> None:
        self._agent = agent
        self._lag = FleetLag.of(settings)
        self._figures = BackgroundValue[Mapping[str, TopicFigures]](self._look, {}, _EVERY_S)

    def value(self) -> dict[str, Any]:
        """Return a JSON value; the figures are some seconds old, and unknown at first."""
        status, figures = self._agent.status(), self._figures()
        return {
            "agent": status["agent"]["id"],
            "agents": status["view"]["members"] if status["view"] else [],
            "owners": self._agent.owners(),
            "paused": status["paused"],
            "figures": {label: asdict(one) for label, one in figures.items()},
            "summary": summary(figures),
            "at": time.time(),
        }

    def _look(self) -> Mapping[str, TopicFigures]:
        topics: dict[str, list[FleetTopic]] = {}
        for one in self._agent.topics():
            topics.setdefault(one.source, []).append(one)
        return self._lag.look(topics)
