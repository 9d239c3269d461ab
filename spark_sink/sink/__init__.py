"""`delta-exactly-once`: rows to files, and a batch compared with the table before it is committed.

* `delta_sink`: Spark's calls.
* `sink_options`: the options of the sink.
* `topic_routes`: which table a topic goes to.
* `rows_by_table`: rows of a task sorted to their tables, bad ones apart.
* `direct_landing`: files written by the reading tasks themselves.
* `query_tables`: the tables of one query, each with its quarantine.
* `spark_checkpoint`: the ranges of a batch, from Spark's offset log.
* `batch_against_table`: what of a batch is still to be committed (pure).
* `compare_and_swap`: look at the table, decide, commit, repeat on a conflict.
* `quarantine_commit`: bad rows that a commit of the table names, added to its quarantine.
* `quarantine_replay`: quarantined records back into their table.
* `position_rewind`: positions set back to what the rows hold.
"""
