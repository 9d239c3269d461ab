"""The ops log: a Delta table of what ingestion has done, by topic and agent. Off by default.

* `ops_settings`: address, interval and retention, checked against the addresses of the data tables.
* `ops_counts`: batches, rows, bytes and errors of a process, by topic; bytes of records, by partition.
* `ops_table`: appends rows to the Delta table, compacts it, and removes old days.
* `ops_writer`: writes the counts at intervals, in a thread of its own.
"""
