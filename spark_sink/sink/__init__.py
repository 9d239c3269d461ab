"""The sinks: they write rows to files, and compare a batch with the table before the commit.

* `delta_sink`: `delta-exactly-once`, Spark's calls for Delta tables.
* `iceberg_sink`: `iceberg-exactly-once`, Spark's calls for Iceberg tables.
* `sink_options`: the options of the sink.
* `topic_routes`: the table of each topic.
* `row_options`: how fleets and claims make rows of records.
* `rows_by_table`: sorts the rows of a task by table, and separates bad rows; `rows_by_topic`: groups rows by topic.
* `newer_schema`: whether rows of a newer schema may be written.
* `direct_landing`: files written by the reading tasks.
* `query_columns`: the columns of a query, as Arrow has them.
* `query_tables`: the tables of one query, each with its quarantine.
* `spark_offset_log`: the ranges of a batch, from Spark's offset log.
* `spark_landing`: files written by Spark's own Parquet writer, in `foreachBatch`.
* `spark_written_files`: these files, in a folder beside those of the table.
* `batch_against_table`: decides which part of a batch is still to be committed. Pure.
* `foreach_batch_write`: distinguishes a second write of a batch in `foreachBatch` from a replay. Pure.
* `range_write`: a batch write outside of a stream: ranges in its options. Pure.
* `commit_by_compare_and_swap`: reads the table, decides, commits, and retries on a conflict.
* `quarantine`: the tables of bad records: their commits, replay and dead letters.
* `rewind`: sets positions back to the rows of a table that was restored or rolled back.
"""
