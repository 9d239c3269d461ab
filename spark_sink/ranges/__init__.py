"""Offsets of a batch: how far to read, and which task reads what. Pure.

* `batch_offset`: the offset of a batch, one JSON value.
* `assigned_positions`: the next offset of each assigned partition.
* `batch_admission`: how far into each partition the next batch reads.
* `task_packing`: which ranges one Spark task reads.
* `task_progress`: whether a task has read everything there is.
"""
