"""Runs every policy on every trace."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assignors.errors import LimitsError
from assignors.scaling.pipelines import POLICIES, Pipeline
from assignors.scaling.recommendation_limits import Bounds
from assignors.scaling.workers_of_topic import Scaler
from assignors.simulation.oracle import Oracle
from assignors.simulation.score import Score, score, together
from assignors.simulation.simulator import Run, World, simulate
from assignors.simulation.traces import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The result of a policy on a trace.

    Attributes:
        trace: name of the trace.
        policy: name of the policy.
        runs: one per topic.
        score: of all topics together.
        oracle_hours: worker-hours of the oracle; None if it did not run.
    """

    trace: str
    policy: str
    runs: list[Run]
    score: Score
    oracle_hours: float | None

    @property
    def ratio(self) -> float | None:
        """Worker-hours divided by the oracle's."""
        return self.score.worker_hours / self.oracle_hours if self.oracle_hours else None


def scaler_for(policy: str, trace: Trace, pipeline: Pipeline) -> Scaler:
    """Return the scaler of a policy for a trace; unless a policy measures the rate of a worker, it gets the true rate.

    Raises:
        LimitsError: no such policy.
    """
    if policy == "oracle":
        return Scaler(policy=Oracle.of(trace, pipeline.slo_s), limits=(Bounds(),), worker_rate=trace.worker_rate)
    name, _, measured = policy.partition(":")
    if name not in POLICIES or measured not in {"", "measured"}:
        raise LimitsError(f"policy {policy!r}: known are {', '.join(POLICIES)}, oracle and capacity:measured")
    settings = {"policy": name, "worker_rate": None if measured else trace.worker_rate}
    return pipeline.model_copy(update=settings).scaler(trace.retention_s)


def compare_policies(
    traces: Iterable[Sequence[Trace]], policies: Iterable[str], pipeline: Pipeline, world: World | None = None
) -> Iterable[Outcome]:
    """Run every policy on every trace; the oracle runs first, because the others are compared with it.

    Args:
        traces: each a sequence of topics.
        policies: names as in `scaler_for`.
        pipeline: settings that all policies share.
        world: how the simulated group behaves.

    Yields:
        One outcome per pair, as soon as it is known.

    Raises:
        LimitsError: no such policy.
    """
    names = ["oracle", *(name for name in policies if name != "oracle")]
    for topics in traces:
        for name in names[1:]:
            scaler_for(name, topics[0], pipeline)  # reports an unknown name before the slow oracle runs
        hours: float | None = None
        for name in names:
            runs = [simulate(trace, scaler_for(name, trace, pipeline), world) for trace in topics]
            found = together([score(run, pipeline.slo_s) for run in runs])
            hours = found.worker_hours if name == "oracle" else hours
            yield Outcome(trace=topics[0].name, policy=name, runs=runs, score=found, oracle_hours=hours)
