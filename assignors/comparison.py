"""What each strategy would make of a live group: needs kafka-python, changes nothing."""

from assignors._comparison import STRATEGIES, Outcome, Settings, compare
from assignors._live_group import LiveGroup, read_group
from assignors._stock import STOCK, stock_plan

__all__ = ["STOCK", "STRATEGIES", "LiveGroup", "Outcome", "Settings", "compare", "read_group", "stock_plan"]
