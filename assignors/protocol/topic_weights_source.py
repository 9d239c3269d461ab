"""Volumes of topics from a mapping or a function, read again before each plan."""

import logging
from collections.abc import Callable

from assignors.errors import WeightError
from assignors.planner.topic_volumes import TopicWeights, check_weights

log = logging.getLogger(__name__)

WeightsSetting = TopicWeights | Callable[[], TopicWeights] | None
"""Volume of each topic by name, or a function that returns it; None to balance the number of partitions."""


class WeightsSource:
    """The last valid weights of a source.

    Contract: the first read raises, so that an invalid setting fails at its creation. After a later failure of the
    function the last valid weights stay, and the failure is logged once until the function succeeds again.

    Raises:
        WeightError: no mapping, a weight that is negative or not finite, or a function that raises.
    """

    def __init__(self, source: WeightsSetting) -> None:
        self._source = source
        self._failed = False
        self.value = self._read()

    @property
    def given(self) -> bool:
        """Whether there is a source."""
        return self._source is not None

    @property
    def changes(self) -> bool:
        """Whether the weights can change."""
        return callable(self._source)

    def refresh(self) -> None:
        """Read again."""
        try:
            self.value = self._read()
        except Exception as error:  # noqa: BLE001 -- a user's function may raise any error
            if not self._failed:
                log.warning("the weights of topics stay, the source failed: %s", error)
            self._failed = True
        else:
            self._failed = False

    def _read(self) -> TopicWeights | None:
        if self._source is None:
            return None
        try:
            found = self._source() if callable(self._source) else self._source
        except Exception as error:
            raise WeightError(f"weights: the function {self._source!r} failed: {error!r}") from error
        check_weights(found)
        return dict(found)

    def __str__(self) -> str:
        """Return the setting as text, for the comparison of members."""
        return "of a function" if self.changes else repr(self.value)
