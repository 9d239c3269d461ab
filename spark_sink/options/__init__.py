"""What the options of a query say, as values.

* `texts`: Spark's option texts read as numbers, flags, words and JSON.
* `source_options`: the options of the source.
* `starting_offsets`: where partitions begin that neither table nor group knows.
* `fetch_settings`: how a task reads.
"""
