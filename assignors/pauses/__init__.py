"""Pauses: topics that the readers of a group do not read until they are resumed.

* `pause_records`: the records of the pauses, on a compacted topic of each cluster.
* `pauses_client`: reading and writing that topic.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.pauses.pause_records import TOPIC, Pause, PausedTopic
    from assignors.pauses.pauses_client import PausesFeed, PausesPublisher

__all__ = ["TOPIC", "Pause", "PausedTopic", "PausesFeed", "PausesPublisher"]

_MODULES = {
    "TOPIC": "pause_records",
    "Pause": "pause_records",
    "PausedTopic": "pause_records",
    "PausesFeed": "pauses_client",
    "PausesPublisher": "pauses_client",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
