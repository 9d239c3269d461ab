"""`azimuth sink` as a process.

* `spark_agent`: a Spark driver with one query.
* `agent_settings`: a TOML file, environment variables, flags.
* `agent_metrics`: Prometheus metrics of the agent.
* `worker_daemon`: the process that Spark's Python workers are forked from.
* `agent_fences`: one agent of a name on a machine, one table of a checkpoint.
* `commit_notes`: what an agent's commits left in the tables' logs.
* `progress_log`: a line now and then about the rows committed.
"""
