"""Computes how many agents a group needs, from the demand of its topics. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from assignors.scaling.workers_of_topic import Decision
from assignors.settings.strict_numbers import Real, Whole

_MOST_AGENTS = 10_000


class AgentsSettings(BaseModel):
    """What one agent of a group can read, and the limits of the number; `[agents.<group>]` in the autoscaler's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent_rate: Real | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Records a second that one agent reads, of all its topics; None for the highest rate measured.",
    )
    drain_s: Real = Field(
        default=600.0, gt=0, allow_inf_nan=False, description="Time in which a backlog is to be read, seconds."
    )
    topics: Whole = Field(
        default=200,
        ge=1,
        description="Maximum number of topics of an agent; a topic with three workers counts three times.",
    )
    slack: Real = Field(
        default=0.25,
        gt=0,
        le=10,
        description="The number of agents falls only if the smaller number could handle this much more demand.",
    )
    least: Whole = Field(default=1, ge=1, le=_MOST_AGENTS, description="Minimum number of agents.")
    most: Whole = Field(default=_MOST_AGENTS, ge=1, le=_MOST_AGENTS, description="Maximum number of agents.")

    @model_validator(mode="after")
    def _in_order(self) -> "AgentsSettings":
        if self.least > self.most:
            raise ValueError(f"least={self.least} is more than most={self.most}")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The demand of a group's topics; every field rises with the demand.

    Attributes:
        widest: largest number of workers of one topic: they are different agents.
        topics: sum of the workers of all topics.
        arriving: records per second written.
        backlog: records to read.
    """

    widest: int = 0
    topics: int = 0
    arriving: float = 0.0
    backlog: float = 0.0

    def times(self, factor: float) -> "Demand":
        """Return a demand with `factor` times the records and topics; the widest topic stays the same."""
        return Demand(
            widest=self.widest,
            topics=math.ceil(self.topics * factor),
            arriving=self.arriving * factor,
            backlog=self.backlog * factor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsNeeded:
    """A number of agents, 1 or more, and its reason."""

    agents: int
    reason: str


def demand(decisions: Iterable[Decision]) -> Demand:
    """Sum up the decisions of a group's topics.

    Records of partitions whose lag no number of workers changes are left out, as in the decisions.
    """
    made = list(decisions)
    return Demand(
        widest=max((one.workers for one in made), default=0),
        topics=sum(one.workers for one in made),
        arriving=sum(float(np.nansum(one.view.arriving[one.view.moving])) for one in made),
        backlog=float(sum(one.view.lag_total for one in made)),
    )


def measured_agent_rate(decisions: Iterable[Decision]) -> float | None:
    """Return the highest rate of one worker of any topic: an agent reads all its topics together at least this fast."""
    return max((one.state.worker_rate for one in decisions if one.state.worker_rate), default=None)


def agents_for(wanted: Demand, settings: AgentsSettings, agent_rate: float | None = None) -> AgentsNeeded:
    """Compute the smallest number of agents that meets a demand; it never falls when a field of the demand rises.

    Args:
        wanted: the demand.
        settings: settings of the group.
        agent_rate: measured rate, for settings without one; without both, rates do not count.
    """
    rate = settings.agent_rate or agent_rate
    asks = [
        (settings.least, "the least that is configured"),
        (wanted.widest, f"a topic has {wanted.widest} workers"),
        (math.ceil(wanted.topics / settings.topics), f"{wanted.topics} seats of topics, {settings.topics} an agent"),
    ]
    if rate:
        reading = wanted.arriving + wanted.backlog / settings.drain_s
        reason = f"{reading:,.0f} records/s arrive or wait, an agent reads {rate:,.0f}"
        asks.append((min(math.ceil(reading / rate), _MOST_AGENTS), reason))
    agents, reason = max(asks, key=lambda one: one[0])
    if agents > settings.most:
        return AgentsNeeded(agents=settings.most, reason=f"{reason}; at most {settings.most}")
    return AgentsNeeded(agents=agents, reason=reason)


def agents_needed(
    wanted: Demand, settings: AgentsSettings, before: int | None = None, agent_rate: float | None = None
) -> AgentsNeeded:
    """Choose the number of agents: it rises at once, and falls only to a number that meets `slack` more demand.

    Each change moves topics, so a demand that varies by less than `slack` must not change the number.

    Args:
        wanted: the demand.
        settings: settings of the group.
        before: the current number; None if there is none.
        agent_rate: as for `agents_for`.
    """
    now = agents_for(wanted, settings, agent_rate)
    if before is None or before <= now.agents:
        return now
    roomy = agents_for(wanted.times(1 + settings.slack), settings, agent_rate)
    if before <= roomy.agents:
        return AgentsNeeded(agents=before, reason=f"kept; {now.agents} would do: {now.reason}")
    return AgentsNeeded(agents=roomy.agents, reason=f"{roomy.reason}, with {settings.slack:.0%} to spare")
