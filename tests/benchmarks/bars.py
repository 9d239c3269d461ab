"""The bars that the benchmarks' figures must reach, beside the figures: `make bench-check`.

A figure is found by its path in build/bench/<report>.json: parts separated by `/`, with `*` and `?` as in file names.
A section that was not measured is listed as such and fails nothing, except with `--all`; a section without the figure
fails.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any

_FLIGHTS = 336_776  # of the demo
FOLDER = Path(__file__).parents[2] / "build" / "bench"


@dataclass(frozen=True, slots=True)
class Bar:
    """A range that each figure under a path must be in.

    Attributes:
        report: name of the file without its ending.
        path: of the figures; its first part is the section.
        least: smallest value that is good enough.
        most: largest value that is good enough.
    """

    report: str
    path: str
    least: float = -inf
    most: float = inf

    @property
    def text(self) -> str:
        """The bar as people write it."""
        return " and ".join(
            f"{sign} {value:g}" for sign, value in ((">=", self.least), ("<=", self.most)) if abs(value) < inf
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """One figure beside its bar.

    Attributes:
        place: report and path of the figure, or of the bar where there is no figure.
        figure: what was measured; None where the section was not measured, or has no such figure.
        bar: what it must reach.
        holds: None where the section was not measured.
    """

    place: str
    figure: float | None
    bar: str
    holds: bool | None

    def __str__(self) -> str:
        state = {True: "ok", False: "MISSED", None: "not measured"}[self.holds]
        figure = "-" if self.figure is None else f"{self.figure:.4g}"
        return f"{state:<13}{figure:>10}  {self.bar:<12}  {self.place}"


BARS = (
    Bar("assignors", "speed/30 members, 300 partitions, 300 topics/full_ms", most=5),
    Bar("assignors", "speed/1000 members, 1000 partitions, 1000 topics/full_ms", most=100),
    Bar("assignors", "speed/1000 members, 10000 partitions, 100 topics/full_ms", most=5),
    Bar("assignors", "speed/1000 members, 10000 partitions, 100 topics/join_ms", most=5),
    Bar("assignors", "speed/1000 members, 50000 partitions, 1000 topics/full_ms", most=300),
    Bar("assignors", "speed/unequal subscriptions, 1000 members, 10000 partitions/*_ms", most=500),
    Bar("assignors", "joins under caps/*/join_ms", most=60),
    Bar("assignors", "worker caps in larger groups/in all/moved to lower bound", most=1.05),
    Bar("assignors", "group consumer: calls/calls/poll/ratio", least=0.9),
    Bar("assignors", "group consumer: calls/calls/consume(*)/ratio", least=0.95),
    Bar("assignors", "group consumer: idle GroupConsumer/percent", most=0.4),
    Bar("fleet", "decision/decide_ms/*", most=100),
    Bar("fleet", "rolling restart/end_s/most", most=10),
    Bar("fleet", "rolling restart/gap_s/most", most=3),
    Bar("fleet", "rolling restart/moves_of_a_topic/most", most=2),
    Bar("fleet", "volume balance/max_to_mean_by_volume/*/bytes", most=1.10),
    Bar("lake", "commit to an aged Iceberg table/*_ms/iceberg-exactly-once/median of the last 50", most=150),
    Bar("lake", "commit to an aged Iceberg table/cpu_ms/iceberg-exactly-once/growth", most=1.5),
    Bar("lake", "commit to an aged Iceberg table/wall_ms/iceberg-exactly-once/growth", most=1.5),
    Bar("producer", "decision/worst_us/null", most=0.5),
    Bar("producer", "decision/worst_us/key", most=1.0),
    Bar("producer", "decision/growth_6_to_10000/*", most=1.3),
    Bar("producer", "decision/growth_6_to_10000_of_uncommon_keys/*", most=1.3),
    Bar("producer", "produce/rate_ratio/median of rounds/global *", least=0.95),
    Bar("producer", "produce/rate_ratio/median of rounds/pure *", least=0.7),
    Bar("producer", "end_to_end_*/rate_ratio_median/global", least=0.95),
    Bar("producer", "end_to_end_*/rate_ratio_median/null", least=0.95),
    Bar("producer", "end_to_end_*/rate_ratio_median/pure *", least=0.9),
    Bar("producer", "zone_failure/lost", most=0),
    Bar("producer", "zone_failure/duplicated", most=0),
    Bar("producer", "zone_failure/times_left_home", most=5),
    Bar("scaling", "claims_rate_*/postgresql/claims_a_second", least=500),
    Bar("scaling", "claims_faults_*/holds", least=1),
    Bar("scaling", "policies/bars/*", least=1),
    Bar("spark", "landing, 1 topic, 6 partitions/ways/raw, landed by the tasks/MB_per_s", least=300),
    Bar("spark", "landing, 1 topic, 6 partitions/ways/JSON, landed by the tasks/MB_per_s", least=150),
    Bar("spark", "landing, 1 topic, 6 partitions/ways/raw into Iceberg, landed by the tasks/MB_per_s", least=150),
    Bar("spark", "224 topics x 3 partitions/seconds/kafka-group/batch", most=1.5),
    Bar("spark", "224 topics x 3 partitions/seconds/kafka-group/wall", most=2.5),
    Bar("spark", "224 topics x 3 partitions/seconds/kafka-group/start", most=0.7),
    Bar("spark", "1 topic, 6 partitions, 10 x flights/times_faster_than/jvm*", least=2),
    Bar("spark", "1 topic, 6 partitions, 10 x flights/times_faster_than_by_wall/jvm*", least=1.6),
    Bar("spark", "cost by tables/tables/300/MB_per_s", least=100),
    Bar("spark", "start of an agent/agents/azimuth sink/first_row_s", most=8),
    Bar("spark", "start of an agent/agents/azimuth agent/first_row_s", most=2),
    Bar("spark", "JSON with SQL between/times_faster_than_jvm/SparkLanding", least=1.5),
    Bar("spark", "* trickling/medians/azimuth sink/batch_s/p50", most=0.35),
    Bar("spark", "* trickling/medians/azimuth sink/freshness_s/p95", most=1),
    Bar("spark", "* trickling/medians/azimuth sink/memory/pss_GB", most=0.9),
    Bar("spark", "overhead of */ratios/*/median", most=1.02),
    Bar("spark", "an answer of */share_of_a_core_asked_every_2_s", most=0.02),
    Bar("demo", "seconds/total", most=90),
    Bar("demo", "seconds/cluster", most=10),
    Bar("lake", "union read/*/first_row_s", most=0.5),
    Bar("lake", "union read/*/tail_rows_a_second", least=300_000),
)


def judge(bars: Sequence[Bar], reports: Mapping[str, Mapping[str, Any]]) -> Iterator[Verdict]:
    """Compare the figures of some reports with their bars.

    Args:
        bars: what to compare.
        reports: sections by the name of the report.

    Returns:
        A verdict for each figure, in the order of the bars. Figures are numbers; true counts as 1.
    """
    for bar in bars:
        head, *rest = bar.path.split("/")
        sections = [name for name in reports.get(bar.report, {}) if fnmatchcase(name, head)]
        if not sections:
            yield Verdict(f"{bar.report}/{bar.path}", None, bar.text, holds=None)
        for section in sections:
            place = f"{bar.report}/{section}"
            found = list(_figures(reports[bar.report][section], rest, place))
            if not found:
                yield Verdict("/".join((place, *rest)), None, bar.text, holds=False)
            for where, figure in found:
                yield Verdict(where, figure, bar.text, holds=bar.least <= figure <= bar.most)


def _figures(node: object, path: Sequence[str], place: str) -> Iterator[tuple[str, float]]:
    if not path:
        if isinstance(node, int | float):
            yield place, float(node)
        return
    if isinstance(node, dict):
        for name, below in node.items():
            if fnmatchcase(name, path[0]):
                yield from _figures(below, path[1:], f"{place}/{name}")


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the reports of a folder by their names, and that of the demo beside the folder, if it had all flights."""
    found = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
    file = folder.parent / "demo" / "report.json"
    demo = json.loads(file.read_text()) if file.exists() else {}
    return {**found, "demo": demo} if demo.get("expected_rows") == _FLIGHTS else found


def main(folder: Path = FOLDER, bars: Sequence[Bar] = BARS, *, every: bool = False) -> int:
    """Print each figure beside its bar.

    Args:
        folder: of the reports.
        bars: what to compare.
        every: a bar without a measurement is missed.

    Returns:
        1 where a bar is missed or nothing was measured, else 0.
    """
    verdicts = list(judge(bars, read(folder)))
    for verdict in verdicts:
        print(verdict)  # noqa: T201 - what it is for
    if all(verdict.holds is None for verdict in verdicts):
        print(f"no figures in {folder}: run `make bench` first", file=sys.stderr)  # noqa: T201 - what it is for
        return 1
    unmeasured = sum(verdict.holds is None for verdict in verdicts)
    if every and unmeasured:
        print(f"{unmeasured} of {len(verdicts)} were not measured", file=sys.stderr)  # noqa: T201 - what it is for
        return 1
    return 1 if any(verdict.holds is False for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(every="--all" in sys.argv[1:]))
