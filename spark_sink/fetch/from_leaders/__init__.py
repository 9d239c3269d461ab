"""Reads ranges from the partitions' leaders without librdkafka, on clusters without TLS and SASL.

librdkafka makes an object of each record, in one thread, and frees it in another: 0.9 us of CPU for a record of 316
bytes, with the copy into Arrow. Decoding whole record batches takes 0.2. What does not go as expected is left to
librdkafka: a partition with an error, with aborted transactions or in an old format, and a broker that does not answer.

* `wire_format`: fields of requests and responses as bytes; `fetch_format`: those for records; `metadata_format`: those
  for leaders and the ids of topics.
* `leader_connection`: one broker's socket.
* `known_leaders`: leaders and connections that a task leaves to the next one.
* `batch_decoder_compiled`: finds the records in a response, compiled.
* `response_records`: their copy into Arrow; `record_layout`: their layout.
* `uncompressed_batches`: record batches without their compression; `snappy_blocks`: snappy in Java's frame.
* `leader_fetching`: the requests of a task, until its ranges are read; `task_broker`: those to one broker.
* `plain_properties`: whether a user's properties allow it.
"""
