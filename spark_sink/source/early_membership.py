"""A membership that begins before Spark asks for offsets; the reader of the same group in this process takes it over.

Spark asks seconds after its start has begun, and a join takes a second or more: the brokers let a new group wait
for further members (`group.initial.rebalance.delay.ms`, 3 s by default), and the requests.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from spark_sink.options.batch_limits import BatchLimits
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_format import ValueFormat
from spark_sink.source.group_membership import KafkaMembership


class EarlyMembership:
    """At most one membership of this process, which no reader has taken yet.

    Contract: one thread at a time; what is not taken must leave, because its partitions are not read.
    """

    def __init__(self) -> None:
        self._begun: tuple[SourceOptions, KafkaMembership] | None = None

    def begin(self, given: Mapping[str, str]) -> None:
        """Begin to join with the options of a reader. A failure is the reader's to report: it tries again."""
        with contextlib.suppress(Exception):  # of both clients and of their Python callbacks
            options = SourceOptions.parse(given)
            membership = KafkaMembership(options)
            self._begun = _of_membership(options), membership
            membership.begin()

    def take(self, options: SourceOptions) -> KafkaMembership | None:
        """Return the membership if it is of these options; else leave, and return None."""
        if self._begun is not None and self._begun[0] == _of_membership(options):
            _, membership = self._begun
            self._begun = None
            return membership
        self.leave()
        return None

    def leave(self) -> None:
        """Leave the group, if the membership was not taken."""
        if self._begun is not None:
            self._begun[1].leave()
        self._begun = None


EARLY = EarlyMembership()
"""That of this process."""


def _of_membership(options: SourceOptions) -> SourceOptions:
    """Return the options without those that are only for batches and rows: Spark learns some of them later."""
    return replace(
        options, landing=None, value=ValueFormat(), limits=BatchLimits(), parallelism=1, min_partitions=1, traffic=None
    )
