"""The findings of the run: the verdict, the tiles, and the figures with the way each was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_sink.demo.report.run_record import Run

NOT_MEASURED = "not measured"
SOCKETS = "TCP connections to brokers, counted at the agent's open sockets"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether every record is in the table exactly once; None if unknown."""

    exactly_once: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class Tile:
    """One headline figure; `good` colours it, None leaves it neutral."""

    label: str
    value: str
    detail: str = ""
    good: bool | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table of figures."""

    name: str
    value: str
    how: str


def number(value: float | None, unit: str = "", digits: int = 0) -> str:
    """Format a number for people, or state that it was not measured."""
    return NOT_MEASURED if value is None else f"{value:,.{digits}f}{unit}"


def percent(share: float | None) -> str:
    """Format 0.667 as 66.7 %."""
    return number(None if share is None else 100 * share, " %", 1)


def size(amount: float | None) -> str:
    """Format bytes with a decimal unit: 126 MB are 126,000,000 bytes."""
    if amount is None:
        return NOT_MEASURED
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(amount) >= unit:
            return f"{amount / unit:,.1f} {name}"
    return f"{amount:.0f} B"


def money_per_tb(share: float | None, price_per_gb: float | None) -> str:
    """Format the cost of cross-zone traffic for every TB produced, with one direction billed."""
    return NOT_MEASURED if share is None or price_per_gb is None else f"${share * price_per_gb * 1000:,.2f}"


def verdict(run: Run) -> Verdict:
    """Judge the run by the rows of the table."""
    wrong = [
        f"{count:,} {what}"
        for count, what in (
            (run.missing, "missing"),
            (run.duplicates, "more than once"),
            (run.values_differ, "with other values than the data set"),
        )
        if count
    ]
    if run.rows is not None and run.expected_rows is not None and run.rows != run.expected_rows:
        wrong.append(f"{run.rows:,} rows where {run.expected_rows:,} were produced")
    if wrong:
        return Verdict(exactly_once=False, text=f"Not exactly once: {', '.join(wrong)}.")
    if run.rows is None or run.missing is None or run.duplicates is None:
        return Verdict(exactly_once=None, text="No verdict: the table was not verified.")
    return Verdict(exactly_once=True, text=f"Exactly once: all {run.rows:,} records are in the table{_in_spite(run)}.")


def _in_spite(run: Run) -> str:
    if not run.agents_killed:
        return ""
    agents = "an agent was" if run.agents_killed == 1 else f"{run.agents_killed} agents were"
    return f", none missing, none twice, although {agents} killed on the way"


def tiles(run: Run) -> Sequence[Tile]:
    """Return the headline figures, the most important first."""
    rows_good = None if run.expected_rows is None or run.rows is None else run.rows == run.expected_rows
    crossing = run.cross_zone_share
    return (
        Tile("rows in the table", number(run.rows), f"of {number(run.expected_rows)} produced", rows_good),
        Tile("duplicates", number(run.duplicates), "offsets found twice", _none(run.duplicates)),
        Tile("missing", number(run.missing), "offsets never found", _none(run.missing)),
        Tile(
            "takeover",
            number(run.takeover_seconds, " s", 1),
            _takeover_parts(run) or "kill to first row by another agent",
        ),
        Tile(
            "bytes across zones",
            f"{percent(crossing.default)} → {percent(crossing.az_aware)}"
            if crossing.default is not None or crossing.az_aware is not None
            else NOT_MEASURED,
            "default → AZ-aware partitioner",
        ),
        Tile(
            "records per second",
            number(run.records_per_second),
            f"{number(run.records_per_core_second)} a core, over {number(run.busy_seconds, ' s', 1)} of backlog"
            if run.busy_seconds
            else "no agent had a backlog",
        ),
        Tile("start of the agents", number(run.start_seconds, " s", 1), "two at once, to the first commit"),
        Tile("freshness, p95", number(run.freshness_p95_seconds, " s", 1), "95 % of the live rows came within"),
    )


def _takeover_parts(run: Run) -> str:
    parts = run.takeover_parts or {}
    return ", ".join(f"{name.replace('_', ' ')} {value:.1f} s" for name, value in parts.items())


def _none(count: int | None) -> bool | None:
    return None if count is None else count == 0


def figures(run: Run) -> Sequence[Figure]:
    """Return every figure of the page with the way it was measured."""
    crossing = run.cross_zone_share
    sample = "" if run.default_sample_share is None else f", on {percent(run.default_sample_share)} of the records"
    return (
        Figure("rows", number(run.rows), "counted in the Delta table after the last commit"),
        Figure("rows expected", number(run.expected_rows), "records in the data set"),
        Figure("duplicates", number(run.duplicates), "(topic, partition, offset) found more than once in the table"),
        Figure("missing", number(run.missing), "offsets that Kafka holds and the table does not"),
        Figure("values that differ", number(run.values_differ), "rows compared with the data set, field by field"),
        Figure("agents killed", number(run.agents_killed), "SIGKILL, in the middle of the run"),
        Figure(
            "takeover",
            number(run.takeover_seconds, " s", 2),
            "from the signal to the first commit of a row of the dead agent's partitions by another agent"
            + (f": {parts}" if (parts := _takeover_parts(run)) else ""),
        ),
        Figure(
            "partitions moved on the kill",
            number(run.partitions_moved_on_kill),
            f"owners before and after; the dead agent had owned {number(run.partitions_owned_by_killed)}",
        ),
        Figure(
            "cross-zone share, default partitioner",
            percent(crossing.default),
            f"bytes by the producer's zone and the leader's{sample}",
        ),
        Figure("cross-zone share, AZ-aware", percent(crossing.az_aware), "the same, all records"),
        Figure("produced", size(run.produced_bytes), "keys and values, before compression"),
        Figure(
            "records per second",
            number(run.records_per_second),
            f"rows by the {number(run.busy_seconds, ' s', 1)} in which an agent landed more than arrived; per core "
            f"{number(run.records_per_core_second)}",
        ),
        Figure(
            "start of the agents",
            number(run.start_seconds, " s", 1),
            "from the start of two agents to the first commit",
        ),
        Figure(
            "freshness, p95",
            number(run.freshness_p95_seconds, " s", 2),
            "commit time less the record's timestamp; 95 % of the rows are below",
        ),
        *_connections(run),
    )


def _connections(run: Run) -> Sequence[Figure]:
    measured = run.connections
    computed = "computed by kafka-python's own assignor for the same agents"
    ours = [Figure(f"connections of {agent}", number(count), SOCKETS) for agent, count in measured.per_agent.items()]
    return (
        *(ours or [Figure("connections", NOT_MEASURED, NOT_MEASURED)]),
        Figure("pairs of agent and topic, ours", number(measured.hrw), "as the agents held them before the kill"),
        Figure("pairs of agent and topic, range", number(measured.range), computed),
        Figure("pairs of agent and topic, round robin", number(measured.round_robin), computed),
    )
