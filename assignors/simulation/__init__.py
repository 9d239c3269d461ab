"""Simulates scaling policies on traces, with a simulated group and without a broker.

* `traces`: records by partition and time; standard traces are generated from a seed.
* `trace_file`: the user's own traces, from a file.
* `simulated_group`: workers, their partitions and their positions.
* `simulator`: a topic, its workers and a policy, step by step.
* `oracle`: the smallest possible number of workers.
* `score`: the figures of a run.
* `policy_comparison`: runs every policy on every trace.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.simulation.policy_comparison import Outcome, compare_policies
    from assignors.simulation.score import record_ages
    from assignors.simulation.trace_file import traces_from_csv
    from assignors.simulation.traces import STANDARD_TRACES, generate_traces
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "policy_comparison": ["Outcome", "compare_policies"],
            "score": ["record_ages"],
            "trace_file": ["traces_from_csv"],
            "traces": ["STANDARD_TRACES", "generate_traces"],
        },
    )

__all__ = [
    "STANDARD_TRACES",
    "Outcome",
    "compare_policies",
    "generate_traces",
    "record_ages",
    "traces_from_csv",
]
