"""Checks before a start: brokers, topics, rights, the registry and tables, each with a time limit and without Spark.

* `findings`: asks all questions at the same time, and returns a list of findings.
* `broker_checks`: brokers, groups, the topics that the settings select, and the rights to them.
* `registry_checks`: the schema registry and the subject.
* `port_checks`: whether a port is free.
* `table_checks`: whether tables exist, fit and can be written, also that of an ops log.
"""

from spark_sink.checks.broker_checks import ANSWER_S, BrokerChecks, selects
from spark_sink.checks.findings import LIMIT_S, Check, Finding, State, run
from spark_sink.checks.port_checks import port_checks
from spark_sink.checks.registry_checks import check_registry
from spark_sink.checks.table_checks import check_table, check_writable, ops_checks

__all__ = [
    "ANSWER_S",
    "LIMIT_S",
    "BrokerChecks",
    "Check",
    "Finding",
    "State",
    "check_registry",
    "check_table",
    "check_writable",
    "ops_checks",
    "port_checks",
    "run",
    "selects",
]
