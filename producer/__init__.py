"""Who writes where: producers that keep to the partitions of their own zone."""

__all__: list[str] = []
