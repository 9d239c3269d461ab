"""Who reads what: consumer-group assignors and the planner behind them."""

__all__: list[str] = []
