"""Offsets of a batch: how far to read, and which task reads what. Pure.

* `batch_offset`: the offset of a batch, one JSON value.
* `assigned_positions`: the next offset of each assigned partition.
* `batch_admission`: how far into each partition the next batch reads.
* `task_packing`: which ranges one Spark task reads.
* `unread_age`: lag in seconds, the age of the oldest unread record.
* `task_progress`: whether a task has read everything there is.
"""
