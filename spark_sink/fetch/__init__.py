"""A task's reading: librdkafka in, Arrow out.

* `range_reader`: reads ranges of offsets.
* `librdkafka`: a consumer on librdkafka's C interface.
* `topic_ids`: which topic of a name it is, asked after reading.
* `memory_gather`: memory at many addresses into Arrow arrays.
* `record_batches`: records as Arrow batches.
* `raw_columns`: the columns of the raw format.
"""
