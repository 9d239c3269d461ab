"""Offsets of a batch: how far to read, and which task reads which range. Pure.

* `batch_offset`: the offset of a batch, one JSON value.
* `assigned_positions`: the next offset of each assigned partition.
* `batch_ends_within_limits`: how far into each partition the next batch reads.
* `task_packing`: the ranges of each Spark task.
* `lag_seconds`: lag in seconds, the age of the oldest unread record.
* `range_completion`: whether a task has read all records of its ranges.
"""
