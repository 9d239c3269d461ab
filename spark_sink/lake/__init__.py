"""Lake tables: the contract, Delta behind it, and files on their way into a table.

* `table_contract`: what the sink needs of a table format.
* `delta_table`: Delta behind that contract.
* `delta_transactions`: application transactions (`txn`) read from the Delta log.
* `positions`: the next offset by partition that a table holds.
* `file_descriptions`: data files as JSON values.
* `quarantine_log`: the bad rows that commits of a table name.
* `quarantine_records`: records in quarantine, part by part.
* `parquet_landing`: Arrow batches into Parquet files that name their offsets.
* `schema_fit`: whether rows fit a table.
* `compaction`: small files joined by one writer at a time.
* `file_rewrite`: which small files are joined, and how.
* `table_storage`: local folders and object stores as one file system.
* `verification`: holes and doubles, from the table alone.
"""
