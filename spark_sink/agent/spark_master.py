"""The forms of Spark's master, and the cores of its cluster. Pure.

A text of another form would end Spark seconds after its start.
The number of tasks of a batch depends on the cores of the cluster; the driver's machine may have fewer.
"""

import re
from collections.abc import Mapping
from typing import Final

from assignors.settings import nearest

_HOST: Final = r"[^\s,/]+:\d+"
# As Spark's SparkSubmit and SparkMasterRegex take them; SparkSubmit refuses every other text.
_FORMS: Final = re.compile(
    r"local"
    r"|local\[(0*[1-9]\d*|\*)(\s*,\s*\d+)?\]"  # threads, and the failures of a task that end its job
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    rf"|spark://{_HOST}(,{_HOST})*"
    r"|yarn"
    r"|k8s://(https?://)?[^\s/:]\S*"
)
_NEEDED: Final = {
    "local": "local, local[4], local[*] or local[4,2]",
    "local-cluster": "local-cluster[2,1,1024]",
    "spark": "spark://host:7077",
    "yarn": "yarn",
    "k8s": "k8s://https://host:443",
}
"""Examples by the first word of a master."""
_KEY: Final = "spark.master"


def check_master(text: str) -> str:
    """Return a master of Spark.

    Raises:
        ValueError: Spark knows no master of this form; the message proposes the nearest one.
    """
    if _FORMS.fullmatch(text):
        return text
    raise ValueError(f"{text!r} is not a master of Spark; {_way_out(text)}")


def check_configured_master(spark: dict[str, str]) -> dict[str, str]:
    """Return a configuration of Spark whose `spark.master`, which overrides the agent's master, is valid.

    Raises:
        ValueError: as `check_master`.
    """
    if _KEY in spark:
        try:
            check_master(spark[_KEY])
        except ValueError as error:
            raise ValueError(f"{_KEY}: {error}") from error
    return spark


def _way_out(text: str) -> str:
    """Correct the first word and keep the rest, such as the number of threads; else show the forms."""
    word = re.split(r"[^\w-]", text, maxsplit=1)[0]
    meant = nearest(word, _NEEDED)
    if meant is None:
        return f"need one such as {', '.join(_NEEDED.values())}"
    corrected = meant + text[len(word) :]
    return f"did you mean {corrected!r}?" if _FORMS.fullmatch(corrected) else f"need {_NEEDED[meant]}"


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
