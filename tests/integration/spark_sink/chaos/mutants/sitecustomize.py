"""Broken variants of the product, loaded by every Python process whose path has this folder: a run has to find each.

AZIMUTH_CHAOS_MUTANT names one: `lost` drops a file of every fourth commit, `doubled` adds one twice, `poison` drops the
bad rows.
"""

import itertools
import os
from dataclasses import replace
from typing import Any

from spark_sink.sink import compare_and_swap
from spark_sink.sink.batch_against_table import Decision, decide

_turns = itertools.count()
_mutant = os.environ.get("AZIMUTH_CHAOS_MUTANT", "")


def _broken(*given: Any, **named: Any) -> Decision:  # noqa: ANN401 -- those of `decide`
    found = decide(*given, **named)
    if _mutant == "poison":
        return replace(found, keep_bad=(), trim_bad=())
    if not found.keep or next(_turns) % 4:
        return found
    if _mutant == "lost":
        return replace(found, keep=found.keep[1:])
    first = found.keep[0]
    return replace(found, trim=[*found.trim, (first, {key: span.first for key, span in first.spans.items()})])


if _mutant:
    vars(compare_and_swap).update(decide=_broken)
