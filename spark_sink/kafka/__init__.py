"""Kafka's clients, and what is asked of brokers without a membership.

* `client_properties`: `kafka.` options for each client library.
* `broker_addresses`: addresses checked before a connection is tried.
* `partition_offsets`: ends, beginnings, times and committed offsets of partitions.
* `group_lag`: how far a group is behind.
"""
