"""Iceberg tables that implement `table_contract`. pyiceberg is imported at the first use of a table.

* `catalogs`: addresses of tables, and the catalogs that hold them.
* `repeated_requests`: requests to a catalog that are repeated for some seconds.
* `rest_answers` and `sql_answers`: catalogs that must answer in time, and as a whole.
* `hive_metastore`: Hive's catalog, with a compare and swap by the metastore.
* `iceberg_table`: the table with compare and swap.
* `table_creation`: creates a table, and the namespaces above it.
* `positions_in_table_properties`: the positions of all groups, as one table property.
* `clock_order`: times of the history that do not go back, although clocks differ.
* `snapshot_commit`: one commit that is never retried: data files, positions, and the assertions.
* `rollback_detection`: detects a table that was rolled back or replaced.
* `rolled_back_positions`: what the metadata of a rolled back table says of its former positions.
* `property_commit`: sets positions and replaces files in one commit, for a rewind.
* `data_entries`: data files as entries of a manifest.
* `columns`: columns and field ids.
* `added_columns`: adds columns to a table.
* `partition_terms`: the option `partitionBy`, and the partition of each row.
* `landing`: the place and the columns of the files that tasks write.
* `matching_names`: the tables of a catalog that an address with placeholders names.
* `stored_rows`: reads positions and offsets of the rows, for `azimuth verify`.
* `offset_filters`: filters of rows by offset.
* `replayed_rows`: quarantined records and the rows to compare them with, for a replay.
* `gone_files`: bad rows that commits name and whose files are gone.
* `snapshot_expiry`: removes old snapshots from the metadata.
* `compaction`: chooses small files, and joins them into larger ones.
* `file_replacement`: replaces files in one commit that asserts the snapshot with all of them.
* `snapshot_producers`: pyiceberg's snapshots that add or replace files, and its transaction, corrected.
* `whole_avro_files`: refuses manifests that were cut, which pyiceberg takes as empty.
* `whole_metadata_files`: refuses metadata files that were cut, as errors of the storage that are read again.
* `file_scan`: reads data files with pyiceberg, without its change of nulls.
* `stored_files`: data files read one by one, and written again without some of their rows.
"""
