"""The reader's member of the consumer group: membership by kafka-python, questions about offsets by confluent-kafka."""

import contextlib
import time
from collections.abc import Mapping
from typing import Any

import structlog
from kafka.errors import KafkaError

from spark_sink._clients import kafka_python_config
from spark_sink._cursors import Holding
from spark_sink._logs import Logs
from spark_sink._member import Member
from spark_sink._offsets import TopicPartition
from spark_sink._options import SourceOptions

_log = structlog.get_logger("azimuth.source")
_STEP_S = 0.02


class KafkaMembership(Logs):
    """A member that joins at the first question about its holding and fetches nothing."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._member: Member | None = None
        self._last = Holding()

    def holding(self, timeout_s: float) -> Holding:
        """What this member holds; waits for a join under way, then answers with what was held last."""
        if self._member is None:
            self._member = Member(self._config(), self._options.topics, self._options.pattern)
        deadline = time.monotonic() + timeout_s
        while (found := self._member.holding()) is None:
            if time.monotonic() > deadline:
                _log.warning("the group has been rebalancing for long", seconds=timeout_s)
                return self._last
            time.sleep(_STEP_S)
        self._last = found
        return found

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Write offsets into the group, fenced by this member's generation."""
        if self._member is None:
            return False
        try:
            self._member.commit(dict(positions))
        except KafkaError as error:
            _log.info("offsets were not committed, the next trigger does it", reason=str(error))
            return False
        return True

    def leave(self) -> None:
        """Leave the group at once."""
        if self._member is not None:
            with contextlib.suppress(KafkaError):
                self._member.close()
        self._member, self._last = None, Holding()

    def _config(self) -> dict[str, Any]:
        return kafka_python_config(self._options.kafka) | {"partition_assignment_strategy": [self._assignor()]}

    def _assignor(self) -> object:
        # Imported here: they load kafka-python's coordinator, which no task needs.
        from assignors import HRWAssignor, ShuffledRoundRobinAssignor  # noqa: PLC0415

        options = self._options
        if options.assignor == "shuffled":
            return ShuffledRoundRobinAssignor(rack=options.rack, agent=options.agent)
        return HRWAssignor(workers=options.workers, epsilon=options.epsilon, rack=options.rack, agent=options.agent)
