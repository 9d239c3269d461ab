"""Notices mistyped environment variables: they would have no effect, without a message."""

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

log = logging.getLogger(__name__)

_NEAR = 0.8  # `log_format` and `table_format` are farther apart
_NESTED = "__"
_OWN = ("AZIMUTH_FLEET_", "AZIMUTH_SCALING_")  # prefixes of other files' settings than those of `AZIMUTH_`
# Variables of this program that are no settings of a file.
_OTHERS = frozenset(
    {
        "AZIMUTH_BROKER_JAR",
        "AZIMUTH_CACHE",
        "AZIMUTH_CLAIMS_DATABASE",
        "AZIMUTH_CLUSTER_DIR",
        "AZIMUTH_LOG_FORMAT",
        "AZIMUTH_STARTED_BY",
        "AZIMUTH_WORKERS_LOG",
    }
)


def mistyped(environment: Iterable[str], prefix: str, settings: Collection[str]) -> dict[str, str]:
    """Return the variable that was probably meant, by variable that is none. Pure.

    Variables that are not near a setting are left out: Kubernetes adds some for each service, as `AZIMUTH_PORT` for one
    with the name `azimuth`.

    Args:
        environment: names of all variables.
        prefix: of the variables of these settings.
        settings: names of the settings. In `<setting>__<key>` the key is not checked.
    """
    found = {}
    for name in sorted(set(environment) - _OTHERS):
        upper = name.upper()
        other = any(upper.startswith(one) for one in _OWN if one != prefix)
        asked, nested, key = upper.removeprefix(prefix).lower().partition(_NESTED)
        if upper.startswith(prefix) and not other and asked not in settings:
            for near in get_close_matches(asked, settings, n=1, cutoff=_NEAR):
                found[name] = f"{prefix}{near.upper()}{nested}{key.upper()}"
    return found


def warn_of_mistyped(prefix: str, settings: Collection[str], environment: Mapping[str, str] = os.environ) -> None:
    """Log a warning for each variable that is nearly the name of a setting, without its value, which may be secret."""
    for name, meant in mistyped(environment, prefix, settings).items():
        log.warning("environment: %s is no setting and has no effect; did you mean %s?", name, meant)
