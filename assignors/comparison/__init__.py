"""Plans of several strategies for a live group. Needs kafka-python; changes nothing.

* `live_group`: members, claims and topics of a live group; `broker_assigned_group`: those of a group of KIP-848.
* `stock_assignors`: kafka-python's own assignors, without a broker.
* `outcomes`: the plan of each strategy, side by side.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.comparison.live_group import LiveGroup, read_group
    from assignors.comparison.outcomes import STRATEGIES, Outcome, Settings, compare
    from assignors.comparison.stock_assignors import STOCK, stock_plan
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "live_group": ["LiveGroup", "read_group"],
            "outcomes": ["STRATEGIES", "Outcome", "Settings", "compare"],
            "stock_assignors": ["STOCK", "stock_plan"],
        },
    )

__all__ = [
    "STOCK",
    "STRATEGIES",
    "LiveGroup",
    "Outcome",
    "Settings",
    "compare",
    "read_group",
    "stock_plan",
]
