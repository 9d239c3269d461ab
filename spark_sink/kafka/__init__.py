"""Kafka's clients, and requests to brokers that need no group membership.

* `client_property_names`: `kafka.` options for each client library.
* `broker_addresses`: checks addresses before a client connects.
* `partition_offsets`: ends, beginnings, times and committed offsets of partitions.
* `group_lag`: the lag of a group.
* `pause_watch`: which topics of a group are paused.
"""
