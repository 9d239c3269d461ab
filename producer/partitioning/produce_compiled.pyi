from producer.partitioning.produce_interpreted import Destinations, PartitionCounts, produce

__all__ = ["Destinations", "PartitionCounts", "produce"]
