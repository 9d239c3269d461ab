"""`delta-exactly-once`: writes rows to files, and compares a batch with the table before the commit.

* `delta_sink`: Spark's calls, for Delta tables.
* `iceberg_sink`: Spark's calls, for Iceberg tables.
* `sink_options`: the options of the sink.
* `topic_routes`: the table of each topic.
* `row_options`: how fleets and claims make rows of records.
* `rows_by_table`: sorts the rows of a task by table, and separates bad rows; `rows_by_topic`: groups rows by topic.
* `newer_schema`: whether rows of a newer schema may be written.
* `direct_landing`: files written by the reading tasks.
* `query_tables`: the tables of one query, each with its quarantine.
* `spark_offset_log`: the ranges of a batch, from Spark's offset log.
* `spark_landing`: files written by Spark's own Parquet writer, in `foreachBatch`.
* `batch_against_table`: decides which part of a batch is still to be committed (pure).
* `second_writes`: tells a second write of a batch in `foreachBatch` from a replay (pure).
* `compare_and_swap`: reads the table, decides, commits, and retries on a conflict.
* `quarantine_commit`: adds the bad rows that a commit of the table names to its quarantine.
* `quarantine_replay`: replays quarantined records into their table.
* `quarantine_listing`: counts and shows the records that wait in quarantine.
* `quarantine_version`: the records of a quarantine that are not published yet.
* `dead_letter_records`: dead letters as Kafka records, in full or as a stub. Pure.
* `dead_letter_progress`: the next offsets to publish, in a compacted topic.
* `dead_letter_publisher`: publishes quarantined records to a Kafka topic.
* `position_rewind`: sets positions back to the offsets of the rows, of a Delta table.
* `iceberg_rewind`: the same of an Iceberg table, after a rollback.
* `set_back_positions`: the positions that a rewind sets back. Pure.
* `rewind_commit`: the commits and the mark of a rewind.
* `bad_records_after_quarantine_restore`: puts bad records back that a RESTORE of the quarantine took.
* `bad_records_after_table_restore`: brings bad records back that an earlier rewind removed.
"""
