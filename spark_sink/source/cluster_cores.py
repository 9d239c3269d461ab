"""Counts the cores of a cluster, for the number of tasks of a batch; the driver's machine may have fewer."""

from collections.abc import Mapping


def cluster_cores(settings: Mapping[str, str], registered: int) -> int:
    """Return the number of tasks that run at the same time once all executors have registered.

    Args:
        settings: Spark's configuration.
        registered: Spark's `defaultParallelism`: on a cluster, the cores of the executors that have registered so far.
    """
    if settings.get("spark.master", "").startswith("local") or "spark.default.parallelism" in settings:
        return registered
    dynamic = settings.get("spark.dynamicAllocation.enabled", "false").lower() == "true"
    executors = "spark.dynamicAllocation.maxExecutors" if dynamic else "spark.executor.instances"
    planned = _number(settings, executors) * max(1, _number(settings, "spark.executor.cores"))
    return max(registered, planned, _number(settings, "spark.cores.max"))


def _number(settings: Mapping[str, str], name: str) -> int:
    text = settings.get(name, "")
    return int(text) if text.isdecimal() else 0
