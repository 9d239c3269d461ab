"""Lake tables: the contract, Delta and Iceberg behind it, and the files on their way into a table.

* `table_contract`: the sink's requirements of a table format.
* `table_settings`: settings for creating and changing a table of either format.
* `delta_table`: the implementation of that contract with Delta.
* `iceberg`: the implementation of that contract with Iceberg.
* `table_formats`: opens a table of either format by its address.
* `delta_creation`: creates Delta tables; `delta_transaction`: commits files and application transactions to them;
  `delta_commit_parts`: a change as the parts of such a commit.
* `delta_log_reader`: application transactions (`txn`) read from the Delta log; `newest_commits`: only from its newest
  commits; `delta_log_files`: the files of a log.
* `newest_version`: opens a Delta table at its newest version, also if the listing of its log is behind.
* `positions_in_delta_log`: the next offset of each partition, stored in a table.
* `file_descriptions`: data files as JSON values.
* `unwritten_quarantine`: the bad rows that commits of a table name.
* `quarantine_reader`: reads quarantined records in parts.
* `parquet_landing`: writes Arrow batches to Parquet files with statistics of their offsets.
* `file_statistics`: the statistics of a file, in the format of a Delta log.
* `partition_folders`: the folders of a Delta table's partitions.
* `foreign_parquet`: reads and rewrites Parquet files of other engines.
* `adopted_files`: describes Parquet files that another writer made for the table.
* `second_group`: refuses a second group in a table.
* `restore_refusal`: refuses a table whose rows a RESTORE took back, until a rewind sets its positions.
* `vacuumed_files`: refuses to commit files that VACUUM has removed.
* `row_group_budget`: one budget of memory for the rows that a task's open files hold.
* `row_offsets`: finds the offsets of each partition in some rows, and selects the rows at or above an offset.
* `trimmed_copies`: copies a data file without the rows that the table has.
* `struct_fields`: compares fields inside structs by their names.
* `schema_fit`: checks whether rows fit a table.
* `compaction`: compacts small files, one writer at a time.
* `file_rewrite`: chooses and compacts small files; rewrites a file without some of its rows.
* `fenced_replacement`: replaces files in one commit, if all of them are still in the table.
* `files_doubled_by_optimize`: finds files that an OPTIMIZE doubled, from the log only.
* `delta_files`: data files of a Delta table read one by one, and replaced without some of their rows.
* `table_dataset`: the rows of a Delta table as an Arrow dataset.
* `repairable_double_rows`: finds rows that are in a table twice.
* `double_row_removal`: removes double rows from a table.
* `conditional_put_check`: checks that an object store does not overwrite log entries.
* `matching_tables`: the existing tables of an address with placeholders.
* `mistaken_addresses`: refuses addresses that mean another folder than their author thinks.
* `storage_names`: refuses mistyped names of options of an object store or a catalog.
* `table_storage`: local folders and object stores as one file system; `table_addresses`: their addresses.
* `holes_and_doubles`: finds holes and doubles, from the table only.
* `ops_log`: a table of what ingestion has done, written beside it.
"""
