"""Pauses: topics that the readers of a group do not read until they are resumed.

* `pause_records`: the records of the pauses, on a compacted topic of each cluster.
* `pauses_client`: reading and writing that topic.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.pauses.pause_records import TOPIC, Pause, PausedTopic
    from assignors.pauses.pauses_client import PausesFeed, PausesPublisher
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "pause_records": ["TOPIC", "Pause", "PausedTopic"],
            "pauses_client": ["PausesFeed", "PausesPublisher"],
        },
    )

__all__ = ["TOPIC", "Pause", "PausedTopic", "PausesFeed", "PausesPublisher"]
