"""Spark's masters: each form of Spark is accepted, and a mistyped one is refused before the JVM starts.

A cluster has other cores than its driver, and at the start of a query few of its executors have registered.
"""

import re

import pytest

from spark_sink.agent.spark_master import check_configured_master, check_master, cluster_cores


@pytest.mark.parametrize(
    "text",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[4, 2]",
        "local[*,3]",
        "local-cluster[2, 1, 1024]",
        "spark://host:7077",
        "spark://one:7077,two:7077",
        "spark://[::1]:7077",
        "yarn",
        "k8s://https://host:443",
        "k8s://host",
    ],
)
def test_each_form_of_spark_is_accepted(text: str) -> None:
    """These are the forms of SparkSubmit; a refusal of one would keep an agent from its cluster."""
    assert check_master(text) == text
    assert check_configured_master({"spark.master": text}) == {"spark.master": text}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lcal", "did you mean 'local'?"),
        ("lcal[4]", "did you mean 'local[4]'?"),
        ("Local[*]", "did you mean 'local[*]'?"),
        ("sparc://m:7077", "did you mean 'spark://m:7077'?"),
        ("local[0]", "need local, local[4], local[*] or local[4,2]"),
        ("local[two]", "need local, local[4]"),
        ("local*", "need local, local[4]"),
        (" local", "need one such as local"),
        ("local-cluster[2]", "need local-cluster[2,1,1024]"),
        ("spark://host", "need spark://host:7077"),
        ("spark//host:7077", "need spark://host:7077"),
        ("yarn-client", "need one such as local, local[4], local[*] or local[4,2], local-cluster[2,1,1024]"),
        ("mesos://host:5050", "need one such as"),
        ("k8s://", "need k8s://https://host:443"),
        ("", "need one such as"),
    ],
)
def test_another_text_is_refused_with_the_way_out(text: str, says: str) -> None:
    """Spark itself says it only in the trace of a JVM that ended."""
    with pytest.raises(ValueError, match=re.escape(f"{text!r} is not a master of Spark; {says}")):
        check_master(text)
    with pytest.raises(ValueError, match=re.escape(f"spark.master: {text!r} is not a master of Spark")):
        check_configured_master({"spark.master": text})


CLUSTER = {"spark.master": "spark://m:7077"}


@pytest.mark.parametrize(
    ("settings", "registered", "cores"),
    [
        ({"spark.master": "local[3]", "spark.executor.instances": "9"}, 3, 3),
        (CLUSTER, 2, 2),
        ({**CLUSTER, "spark.executor.instances": "5", "spark.executor.cores": "4"}, 2, 20),
        ({**CLUSTER, "spark.executor.instances": "5"}, 2, 5),
        ({**CLUSTER, "spark.executor.instances": "5", "spark.executor.cores": "4"}, 32, 32),
        ({**CLUSTER, "spark.cores.max": "12"}, 2, 12),
        ({**CLUSTER, "spark.default.parallelism": "6", "spark.cores.max": "12"}, 6, 6),
        (
            {
                **CLUSTER,
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "10",
                "spark.executor.cores": "2",
                "spark.executor.instances": "1",
            },
            2,
            20,
        ),
        ({"spark.dynamicAllocation.maxExecutors": "infinity", "spark.dynamicAllocation.enabled": "true"}, 4, 4),
    ],
)
def test_cores_are_those_of_the_whole_cluster(settings: dict[str, str], registered: int, cores: int) -> None:
    """What the user set for all tasks counts; else the executors that will be there."""
    assert cluster_cores(settings, registered) == cores
