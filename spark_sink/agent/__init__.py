"""`azimuth sink` as a process.

* `spark_agent`: a Spark driver with one query; `spark_session` starts Spark in a JVM that `start` launched.
* `start/`: what makes the start short.
* `agent_settings`: a TOML file, environment variables, flags.
* `spark_master`: the forms of Spark's master, and the cores of its cluster.
* `agent_metrics`: Prometheus metrics of the agent.
* `worker_daemon`: the process from which Spark forks its Python workers.
* `agent_name_lock`: allows one agent of a name per machine.
* `checkpoint_of_table`: allows one table per checkpoint, and no damaged files in it.
* `commit_notes`: reads the notes of an agent's commits in the tables' logs, and counts them for the ops log.
* `progress_log`: logs the steps of the start, and the committed rows at intervals.
* `stop_signal`: SIGTERM and SIGINT, from the first moment on.
* `sink_checks`: checks brokers, rights, the registry and the table, before Spark starts.
"""
