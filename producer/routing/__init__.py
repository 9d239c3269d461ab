"""Where a record gets its partition: the core that both clients share. No client, no clock, no thread.

* `partition_choice`: the choice for the records of one topic, and its counts.
* `topic_choices`: all topics of one producer.
* `interpreted_path`: `produce` in Python.
* `compiled_path`: the same surface in C, where there is a compiler.
"""
