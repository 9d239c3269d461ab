"""`azimuth sink` as a process.

* `spark_agent`: a Spark driver with one query.
* `agent_settings`: a TOML file, environment variables, flags.
* `agent_metrics`: Prometheus metrics of the agent.
* `worker_daemon`: the process that Spark's Python workers are forked from.
* `progress_log`: a line now and then about the reading.
"""
