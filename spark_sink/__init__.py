"""Kafka to Delta on Spark, every record exactly once, as a member of the consumer group."""

__all__: list[str] = []
