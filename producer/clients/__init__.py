"""The adapters: confluent-kafka, its asyncio client and kafka-python.

* `confluent`: `AZAwareProducer`; `producer_parts`: what its methods use, in one object.
* `confluent_aio`: `AZAwareAIOProducer`; `aio_producer_parts`: what its methods use; `aio_buffer`: its flushes in order.
* `serializing`: `AZAwareSerializingProducer`, `AZAwareAIOSerializingProducer`.
* `kafka_python`: `AZAwarePartitioner`.
* `produce_batch`: many records in one call.
* `forked`: makes an inherited producer unusable in a forked process.
* `configured_policy`: a producer's settings as one value, with the configured partitioner or the default.
* `producer_options`: the settings that the producers for confluent-kafka share.
* `delivery_reports`: counts delivered records, and calls the application's callback.
* `leader_watcher`: the thread that refreshes leaders; `wake_up`: wakes it up, also from a signal handler.
* `leader_requests`: its requests through the producer's own client.
* `unpolled_reports`: reports that wait in memory because the application does not poll.
* `call_apart`: a call of the client in a thread of its own, because a callback may have caused it.
* `client_statistics`: librdkafka's statistics: wire bytes, queues, lost brokers.
* `stalled_partitions`: partitions whose leader takes no records.
* `wire_bytes_by_zone`: bytes on the wire by zone; `kafka_python_wire_bytes`: those of kafka-python, by broker.
* `traffic_meter`: `TrafficMeter`, for any confluent-kafka producer.
"""
