"""The progress log of an agent: a line at intervals, if its status has changed."""

from collections.abc import Mapping
from typing import Any

_NAMED = 3


def progress(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Compare two statuses of an agent.

    Args:
        before: the status at the previous line; empty at first.
        now: the present status.

    Returns:
        One line; None if nothing changed, so that an idle agent logs nothing.
    """
    logged = ("topics", "rows", "problems", "standing")
    if all(before.get(name) == now[name] for name in logged) and before.get("lag") == now["lag"]:
        return None
    seconds = now["at"] - before.get("at", now["at"])
    rows = now["rows"] - before.get("rows", 0)
    rate = f" ({rows / seconds:.0f}/s)" if seconds > 0 else ""
    line = f"{_counted(len(now['topics']), 'topic')}, {rows} rows written{rate}{_behind(now)}"
    if any(now["lag"].values()):
        line += f", the oldest unread record is {max(now.get('lag_s', {}).values(), default=0.0):.0f} s old"
    if now["standing"] != "member":
        line += f", {now['standing']}"
    if now["problems"]:
        line += f", {_counted(len(now['problems']), 'problem')}"
    return line


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _behind(status: Mapping[str, Any]) -> str:
    """Describe the lag; a topic whose lag is unknown must not look like one without lag.

    An agent without topics has no lag: it may have none because no broker has answered yet.
    """
    lag: Mapping[str, int] = status["lag"]
    if not status["topics"] and not lag:
        return ""
    unknown = [topic for topic in status["topics"] if topic not in lag]
    if unknown and not lag:
        return ", lag unknown"
    slowest = sorted((behind, topic) for topic, behind in lag.items() if behind)[: -_NAMED - 1 : -1]
    named = f" ({', '.join(f'{topic} {behind}' for behind, topic in slowest)})" if slowest else ""
    rest = f", lag of {_counted(len(unknown), 'topic')} unknown" if unknown else ""
    return f", {sum(lag.values())} behind{named}{rest}"
