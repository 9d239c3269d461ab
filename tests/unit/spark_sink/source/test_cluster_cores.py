"""A cluster has other cores than its driver, and at the start of a query few of its executors have registered."""

import pytest

from spark_sink.source.cluster_cores import cluster_cores

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
