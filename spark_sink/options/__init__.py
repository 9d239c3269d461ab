"""The options of a query, as values.

* `option_texts`: Spark's option texts read as numbers, times, sizes, flags, words and JSON.
* `option_spellings`: names of options in messages, as the user has spelled them.
* `batch_limits`: how much a batch reads, and how long a small one waits.
* `source_options`: the options of the source.
* `value_format`: the format and the schema of values; `value_decoders`: their decoders.
* `topic_decoders`: the decoders of a writer's topics, and those of the newest schemas, while it writes.
* `starting_offsets`: where reading begins, and where a batch read ends.
* `fetch_settings`: settings of a task's reading.
"""
