"""What each policy would do on a trace: a simulated group, without a broker.

* `traces`: records by partition and time, standard ones from a seed.
* `trace_file`: traces of your own, from a file.
* `simulated_group`: workers, what each holds and how far it has read.
* `simulator`: a topic, its workers and a policy, step by step.
* `oracle`: the least number of workers that was possible.
* `score`: what a run was worth.
* `policy_comparison`: policies side by side over traces.
"""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from assignors.simulation.policy_comparison import Outcome, compare_policies
    from assignors.simulation.score import record_ages
    from assignors.simulation.trace_file import traces_from_csv
    from assignors.simulation.traces import STANDARD_TRACES, generate_traces

__all__ = [
    "STANDARD_TRACES",
    "Outcome",
    "compare_policies",
    "generate_traces",
    "record_ages",
    "traces_from_csv",
]

_MODULES = {
    "Outcome": "policy_comparison",
    "STANDARD_TRACES": "traces",
    "compare_policies": "policy_comparison",
    "generate_traces": "traces",
    "record_ages": "score",
    "traces_from_csv": "trace_file",
}


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return lazy.attribute(__name__, _MODULES, name)
