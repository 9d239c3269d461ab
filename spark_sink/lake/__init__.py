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
* `file_rewrite`: which small files are joined, and how; a file without some of its rows.
* `fenced_replacement`: files in the place of others, in one commit that compares them.
* `rewrite_lineage`: which files an OPTIMIZE doubled, by the log alone.
* `double_rows`: rows that are in a table twice.
* `table_repair`: double rows taken out of a table.
* `table_storage`: local folders and object stores as one file system.
* `verification`: holes and doubles, from the table alone.
"""
