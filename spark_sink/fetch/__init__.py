"""How a task reads: records from librdkafka, Arrow batches out.

* `range_reader`: reads ranges of offsets.
* `from_leaders`: reads them from the leaders without librdkafka.
* `log_requests`: bounds of a log, and whether its topic is still there.
* `consumer_properties`: the properties of its consumer.
* `librdkafka`: a consumer on librdkafka's C interface; `librdkafka_symbols`: that interface's functions.
* `topic_ids`: topic ids, to detect after reading that a topic was recreated.
* `message_copy`: copies records out of librdkafka's memory: `copy_compiled` in C if there was a compiler at the build,
  else `copy_interpreted`.
* `record_batches`: records as Arrow batches.
* `received_files`: what the tasks of a query received, by topic and broker.
* `raw_columns`: the columns of the raw format.
"""
