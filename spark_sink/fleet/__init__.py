"""Fleets that write to a lake: agents that write their records to Delta tables, without Spark."""
