"""Settings of pipelines, and the policies and limits that they name."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from assignors.clients.topic_names import topic_name
from assignors.errors import LimitsError
from assignors.scaling.baseline_policies import DS2, Keda, Numaflow, Static
from assignors.scaling.policy_contract import Policy
from assignors.scaling.recommendation_limits import (
    Bounds,
    Confirmed,
    CoolDown,
    DownWindow,
    Limit,
    Step,
    UsablePartitions,
)
from assignors.scaling.stalled_lag import GateSettings
from assignors.scaling.threshold_policy import Thresholds
from assignors.scaling.workers_from_lag_policy import REBALANCE_S, Capacity
from assignors.scaling.workers_of_topic import Scaler
from assignors.scaling.workers_records import MOST
from assignors.settings.strict_numbers import Real, Whole
from assignors.settings.validation_errors import message, place, plain

TopicName = Annotated[str, AfterValidator(topic_name)]
PolicyName = Literal["capacity", "thresholds", "keda", "ds2", "numaflow", "static"]

# The default without a rate and a threshold: the rate of the demo's agents on two cores.
_RATE = 1000.0


class Pipeline(BaseModel):
    """The scaling of the topics of one consumer group; each topic has its own number."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    group: str = Field(default="", description="Consumer group.")
    topics: tuple[TopicName, ...] = Field(default=(), description="Topics.")
    pattern: str | None = Field(default=None, description="Regular expression of topics, for the whole name.")
    policy: PolicyName = Field(default="capacity", description="Which policy chooses.")
    slo_s: Real = Field(default=300.0, gt=0, description="Age that an unread record may reach, seconds.")
    worker_rate: Real | None = Field(
        default=None, gt=0, le=1e12, description="Records per second that a worker reads; measured if absent."
    )
    rebalance_s: Real = Field(default=REBALANCE_S, ge=0, description="Seconds without reading that a change costs.")
    window_s: Real = Field(default=7200.0, gt=0, description="How far back a decision sees, seconds.")
    stalled_s: Real = Field(
        default=180.0,
        gt=0,
        description="A committed offset that stays for this long below unread records has stopped.",
    )
    min_workers: Whole = Field(default=1, le=MOST, description="Minimum number of workers of a topic.")
    max_workers: Whole | None = Field(default=None, le=MOST, description="Maximum number of workers of a topic.")
    step_up: Whole | None = Field(default=None, description="So many more at once.")
    step_down: Whole | None = Field(default=None, description="So many fewer at once.")
    cool_down_up_s: Real = Field(default=0.0, description="No more so soon after a change, seconds.")
    cool_down_down_s: Real = Field(default=0.0, description="No fewer so soon after a change, seconds.")
    down_window_s: Real | None = Field(
        default=None, description="Fewer only to the most that was wanted within, seconds."
    )
    min_lag: Whole | None = Field(default=None, description="thresholds: fewer below so many records.")
    max_lag: Whole | None = Field(default=None, description="thresholds: more above so many records.")
    threshold_step: Whole = Field(default=1, ge=1, description="thresholds: so many more at once.")
    threshold_step_down: Whole = Field(default=1, ge=1, description="thresholds: so many fewer at once.")
    falling_s: Real = Field(
        default=60.0, ge=0, description="thresholds: fewer if the lag is gone within, at its current pace, seconds."
    )
    trend_s: Real | None = Field(
        default=None, gt=0, description="thresholds: the trend covers so many seconds; window_s if absent."
    )
    retention_begin: Real = Field(
        default=0.25, ge=0, le=1, description="thresholds: steps up grow from this used part of the retention on."
    )
    retention_part: Real = Field(
        default=0.25, ge=0, le=1, description="thresholds: below this part of the retention, add retention_step."
    )
    retention_step: Whole = Field(default=4, description="thresholds: so many more when retention comes near.")
    lag_threshold: Whole | None = Field(default=None, gt=0, description="keda: records a worker.")
    workers: Whole = Field(
        default=1, ge=1, le=MOST, description="static: the number; others: the number to begin with."
    )
    max_poll_records: Whole | None = Field(
        default=None, gt=0, le=MOST, description="Published for workers: records per poll."
    )
    poll_timeout_ms: Whole | None = Field(
        default=None, gt=0, le=MOST, description="Published for workers: how long a poll waits."
    )

    publish_rates: bool = Field(
        default=False, description="Publish the topics' rates of arrivals, for a fleet with balance = 'volume'."
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        try:
            self.scaler()
        except LimitsError as error:
            raise ValueError(str(error)) from error
        if self.max_workers is not None and self.workers > self.max_workers:
            raise ValueError(f"workers={self.workers} to begin with is above max_workers={self.max_workers}")
        return self

    @classmethod
    def of(cls, **given: object) -> Self:
        """Create a pipeline.

        Raises:
            LimitsError: a setting is unknown or invalid, in one sentence.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise LimitsError("; ".join(sentence(one, Pipeline) for one in error.errors())) from error

    def names(self, topic: str) -> bool:
        """Return whether a topic belongs to this pipeline."""
        return topic in self.topics or (self.pattern is not None and re.fullmatch(self.pattern, topic) is not None)

    def scaler(self, retention_s: float | None = None) -> Scaler:
        """Return the scaler of one topic.

        Args:
            retention_s: the topic's retention; None if records are not deleted by time.

        Raises:
            LimitsError: limits that contradict each other, or an invalid setting.
        """
        return Scaler(
            policy=_POLICIES[self.policy](self, retention_s),
            limits=(*_house_limits(self), *self._own_limits()),
            gate=GateSettings(
                stalled_s=self.stalled_s, hot_s=3 * self.slo_s, rate_s=180.0 * self.pace, hot_rate_s=60.0 * self.pace
            ),
            worker_rate=self.worker_rate,
            retention_s=retention_s,
        )

    @property
    def pace(self) -> float:
        """Factor of all times relative to an objective of five minutes; longer objectives do not lengthen them."""
        return min(self.slo_s / 300.0, 1.0)

    def _own_limits(self) -> list[Limit]:
        limits: list[Limit] = [Step(up=self.step_up, down=self.step_down)]
        if self.down_window_s is not None:
            limits.append(DownWindow(window_s=self.down_window_s))
        limits.append(CoolDown(up_s=self.cool_down_up_s, down_s=self.cool_down_down_s))
        if self.policy == "capacity":
            limits.append(UsablePartitions())
        limits.append(Bounds(least=self.min_workers, most=self.max_workers))
        return limits


def sentence(error: Any, model: type[BaseModel]) -> str:  # noqa: ANN401 -- pydantic's own dictionary
    """Describe the error of a setting of this model, with its place."""
    text = plain(error, model) or message(error)
    return f"{where}: {text}" if (where := place(error)) else text


def _house_limits(pipeline: Pipeline) -> list[Limit]:
    """Return the limits of the policy's original system; the pipeline's own limits follow them."""
    if pipeline.policy == "keda":
        return [Step(up=4, up_factor=2.0), DownWindow(window_s=300.0)]
    if pipeline.policy == "numaflow":
        return [Step(up=2, down=2), CoolDown(up_s=90.0, down_s=90.0)]
    if pipeline.policy == "ds2":
        return [Confirmed(times=2)]
    if pipeline.policy == "thresholds":
        # Given times replace these: every figure of the rule can be set.
        given = pipeline.model_fields_set
        up_s, down_s = (0.0 if f"cool_down_{way}_s" in given else 300.0 for way in ("up", "down"))
        return [CoolDown(up_s=up_s, down_s=down_s)]
    if pipeline.policy == "capacity":
        # The effect of the first change must be visible before the next one.
        return [DownWindow(window_s=300.0 * pipeline.pace), CoolDown(up_s=90.0 * pipeline.pace)]
    return []


def _capacity(pipeline: Pipeline, _: float | None) -> Policy:
    pace = pipeline.pace
    return Capacity(
        slo_s=pipeline.slo_s,
        rebalance_s=pipeline.rebalance_s,
        drain_s=600.0 * pace,
        ahead_s=150.0 * pace,
        price_s=700.0 * pace,
        up_rate_s=60.0 * pace,
        down_rate_s=600.0 * pace,
        trend_s=3600.0 * pace,
    )


def _thresholds(pipeline: Pipeline, retention_s: float | None) -> Policy:
    rate = pipeline.worker_rate or _RATE
    return Thresholds(
        min_lag=int(rate * 30) if pipeline.min_lag is None else pipeline.min_lag,
        max_lag=int(rate * 150) if pipeline.max_lag is None else pipeline.max_lag,
        step=pipeline.threshold_step,
        step_down=pipeline.threshold_step_down,
        falling_s=pipeline.falling_s,
        trend_s=pipeline.trend_s,
        retention_begin=pipeline.retention_begin,
        retention_part=pipeline.retention_part,
        retention_s=retention_s,
        retention_step=pipeline.retention_step,
    )


def _keda(pipeline: Pipeline, _: float | None) -> Policy:
    # One minute of one worker's reading: with half or double that value KEDA changes at least as often.
    return Keda(lag_threshold=pipeline.lag_threshold or max(int((pipeline.worker_rate or _RATE) * 60), 1))


_POLICIES: Mapping[str, Callable[[Pipeline, float | None], Policy]] = {
    "capacity": _capacity,
    "thresholds": _thresholds,
    "keda": _keda,
    "ds2": lambda _pipeline, _retention_s: DS2(),
    "numaflow": lambda _pipeline, _retention_s: Numaflow(),
    "static": lambda pipeline, _retention_s: Static(workers=pipeline.workers),
}
POLICIES = tuple(_POLICIES)
