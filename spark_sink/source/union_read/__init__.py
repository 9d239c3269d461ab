"""The rows of tables up to their positions, then the records of Kafka from exactly these positions to the end.

* `stored_tables`: tables of either format, each at one version.
* `unread_ranges`: the offsets that the tables lack, and the requests to Kafka for them.
* `tail_rows`: records as rows in the columns of a table.
* `union_reader`: the union as one stream of Arrow batches.
* `table_query`: SQL over the union, by DuckDB.
"""
