"""Keeps an agent reading partitions that move to another agent until that agent has started."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from assignors.fleet.agents_view import View
from assignors.fleet.fleet_topic import FleetTopic
from assignors.fleet.unreached_clusters import reached_alike

_SETTLES_S = 1.0
_STEP_S = 0.1


class HandOver:
    """Decides which topics an agent reads besides its own, for a short time after another agent has joined. Pure.

    An agent that joins needs a second or two before it reads. If the others dropped its topics as soon as the view
    changes, these topics would have no reader during this time. While both agents read, the group protocol or the table
    ensures that only one of them writes a record. The same holds when an agent loses or reaches a cluster.

    Args:
        hold_s: time for which topics are kept, seconds; 0 to drop them immediately.
        growth_s: time for which topics are kept that move because other topics appeared or are gone, and shares of a
            topic that got more partitions, seconds. The agents look at their clusters at different times, so it is
            longer than the interval between two looks. Until all have looked, they compute different placements.
    """

    def __init__(self, hold_s: float, growth_s: float = 0.0) -> None:
        self._hold_s = hold_s
        self._growth_s = growth_s
        self._view: View | None = None
        self._mine: dict[str, FleetTopic] = {}
        self._present: frozenset[str] = frozenset()
        self._until: dict[str, tuple[FleetTopic, float]] = {}

    def topics(
        self,
        view: View,
        mine: Collection[FleetTopic],
        present: Collection[FleetTopic],
        now_s: float,
        *,
        reweighed: bool = False,
    ) -> list[FleetTopic]:
        """Return the topics to read, each with its share.

        Args:
            view: the current view.
            mine: topics of this agent in this view.
            present: topics that exist; others are never kept.
            now_s: seconds of a monotonic clock.
            reweighed: whether the weights of topics have changed, which moves topics as a new agent does.
        """
        sizes = {topic.identity: topic.partitions for topic in present}
        joined = self._view is not None and (
            reweighed or bool(set(view.ids) - set(self._view.ids)) or not reached_alike(self._view, view)
        )
        listed = self._view is not None and self._present != sizes.keys()
        for identity, topic in self._mine.items():
            changed = listed or sizes.get(identity, 0) > topic.partitions
            self._hold(topic, now_s, max(self._hold_s * joined, self._growth_s * changed))
        self._view, self._present = view, frozenset(sizes)
        self._mine = {topic.identity: topic for topic in mine}
        self._until = {key: one for key, one in self._until.items() if now_s < one[1] and key in sizes}
        held = {key: topic for key, (topic, _) in self._until.items()}
        return [*(_with(topic, held.pop(key, topic)) for key, topic in self._mine.items()), *held.values()]

    def _hold(self, topic: FleetTopic, now_s: float, for_s: float) -> None:
        """Keep reading a topic in addition to the share kept since the previous change.

        Its new agent may not read it yet.
        """
        if for_s > 0:
            kept, until = self._until.get(topic.identity, (topic, 0.0))
            self._until[topic.identity] = _with(topic, kept), max(until, now_s + for_s)

    def drop(self) -> None:
        """Forget all topics, because the agent may not read."""
        self._view, self._mine, self._until = None, {}, {}


def await_successors(begun: Callable[[], int], longest_s: float) -> None:
    """Wait until other agents have started to read the topics that this agent still reads.

    All agents learn of the change at the same time. So one second after the first sign of another reader, all of them
    have started.

    Args:
        begun: returns a number that rises with each sign of another reader.
        longest_s: maximum wait, seconds; idle topics give no sign.
    """
    before = begun()
    deadline = time.monotonic() + longest_s
    while (now_s := time.monotonic()) < deadline:
        if begun() != before:
            time.sleep(min(_SETTLES_S, deadline - now_s))
            return
        time.sleep(min(_STEP_S, deadline - now_s))


def _with(topic: FleetTopic, held: FleetTopic) -> FleetTopic:
    """Return a topic with the share that was held as well."""
    if topic.share is None or held.share is None:
        return topic
    return replace(topic, share=tuple(sorted({*topic.share, *held.share})))
