"""The options of a query, as values.

* `texts`: Spark's option texts read as numbers, flags, words and JSON.
* `source_options`: the options of the source.
* `value_format`: the format and the schema of values.
* `starting_offsets`: the starting offset of partitions without a position.
* `fetch_settings`: settings of a task's reading.
"""
