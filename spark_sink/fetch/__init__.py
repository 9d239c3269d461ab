"""How a task reads: records from librdkafka, Arrow batches out.

* `range_reader`: reads ranges of offsets.
* `librdkafka`: a consumer on librdkafka's C interface.
* `topic_ids`: topic ids, to detect after reading that a topic was recreated.
* `memory_gather`: copies values from many addresses into Arrow arrays.
* `record_batches`: records as Arrow batches.
* `raw_columns`: the columns of the raw format.
"""
