"""Fleets that write to a lake: agents that write their records to Delta or Iceberg tables, without Spark.

* `fleet_settings`: the settings: one TOML file for all agents, environment variables for each agent; `settings_tables`:
  the tables of that file; `setting_conflicts`: conditions on more than one of them; `reader_settings`: what the readers
  are made of.
* `agent_checks`: the checks before an agent starts; `row_checks`: those about rows, which claims share.
* `agent_process`: an agent as a process, until a signal stops it.
* `kept_agent_name`: the name of an agent that was given none.
* `arrow_without_pandas`: keeps pandas out of an agent's process.
* `ingestion_without_spark`: the readers of all clusters of an agent; `readers_of_sources`: makes them of the settings;
  `later_ingestion`: in a thread, while the agent joins its fleet.
* `reader_and_writer_threads`: reads one cluster, and hands the records to a second thread, which writes them.
* `lane_consumer`: the consumer of one lane; `lane_configuration`: its properties; `open_lanes`: all of a reader;
  `prepared_lanes`: connected before they are read; `first_offsets`: leaders and first offsets of what a lane gets.
* `intended_partitions`: the partitions that a lane should read. Pure.
* `lane_positions`: the position of each partition of a lane. Pure.
* `lane_lag`: the lag of a lane's topics; `fleet_lag`: the lag of all topics of a fleet.
* `unwritten_records`: records that were read and are not written yet.
* `write_queue`: the thread that writes; `table_writer`: the tables of one cluster, by position and topic id;
  `decode_and_commit`: makes rows of records and commits them.
* `schema_in_use`: the schema of a table, until a newer one adds fields.
* `table_refusals`: tables that refuse rows, retried after a pause.
* `group_offset_commits`: commits positions to the group, for lag tools.
* `workers_in_force`: the current workers and weights per topic.
* `commit_counts`: commits and errors, for the ops log; `quarantine_counts`: records in quarantine.
* `received_bytes`: bytes received by zone, and their cost.
* `periodic_reports`: the status file, and a line in the log; `background_values`: slow values of a status.
* `fleet_status`: the status of a fleet, from outside; `whole_fleet`: the same, as one agent sees it.
"""
