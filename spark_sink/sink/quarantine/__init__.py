"""The table of records that could not be decoded, beside each table: its commits, replay and dead letters.

* `quarantine_commit`: adds the bad rows that a commit of the table names to its quarantine.
* `quarantine_listing`: counts and shows the records that wait in quarantine.
* `quarantine_replay`: replays quarantined records into their table.
* `quarantine_version`: the records of a quarantine that are not published yet.
* `dead_letter_records`: dead letters as Kafka records, in full or as a stub. Pure.
* `dead_letter_progress`: the next offsets to publish, in a compacted topic.
* `dead_letter_publisher`: publishes quarantined records to a Kafka topic.
"""
