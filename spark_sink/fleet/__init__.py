"""Fleets with a lake behind them: agents that write what they read into Delta tables, without Spark."""
