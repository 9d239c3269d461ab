"""`SparkLanding` with a table in a bucket: Python writes its files, and the rows and bad records are the same."""

import logging
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_sink import SparkLanding, positions
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.iceberg.catalogs import open_catalog
from tests.integration.spark_sink.small_servers import BUCKET
from tests.integration.spark_sink.test_spark_landing import (
    POISON,
    WITHOUT_FIELDS,
    Options,
    Pipeline,
    plain,
    sorted_rows,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("format_", ["delta-exactly-once", "iceberg-exactly-once"])
def test_rows_and_bad_records_in_a_bucket_are_those_of_a_folder(  # noqa: PLR0913, PLR0917 -- fixtures
    spark: SparkSession,
    cluster: Cluster,
    topic: Callable[..., str],
    endpoint: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    format_: str,
) -> None:
    """In several batches, each with good rows and bad ones; the log says once why it takes longer."""
    pipeline = Pipeline(spark, cluster, tmp_path, topic("landed", partitions=2))
    pipeline.fill(range(60))
    folder, bucket = pipeline.options(format_, "folder"), pipeline.options(format_, "bucket")
    bucket |= (_delta if format_.startswith("delta") else _iceberg)(endpoint, tmp_path)
    columns = ("*",) if format_.startswith("delta") else WITHOUT_FIELDS
    pipeline.run(folder, SparkLanding(format_, folder), *columns)
    with caplog.at_level(logging.WARNING, "spark_sink"):
        pipeline.run(bucket, SparkLanding(format_, bucket), *columns, maxOffsetsPerTrigger="20")
    why = [one.getMessage() for one in caplog.records if "Spark cannot write" in one.getMessage()]
    assert len(why) == 1
    for quarantine, count in ((False, 60 - len(POISON) - 1), (True, len(POISON))):
        found = _rows(bucket, quarantine=quarantine)
        assert len(found) == count
        assert plain(found) == plain(sorted_rows(folder, quarantine=quarantine, format_=format_))
    address = bucket["path"] if format_.startswith("delta") else f"iceberg://{bucket['path']}"
    assert positions(address, bucket["kafka.group.id"], _storage(bucket)) == {
        (pipeline.topic, number): 30 for number in range(2)
    }


def _delta(endpoint: str, _: Path) -> Options:
    storage = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    storage |= {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret"}
    given = {f"storage.{name}": value for name, value in storage.items()}
    return {"path": f"s3://{BUCKET}/{uuid.uuid4().hex}", **given}


def _iceberg(endpoint: str, root: Path) -> Options:
    catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"s3://{BUCKET}/{uuid.uuid4().hex}"}
    catalog |= {"s3.endpoint": endpoint, "s3.region": "us-east-1"}
    catalog |= {"s3.access-key-id": "someone", "s3.secret-access-key": "secret"}
    return {f"catalog.{name}": value for name, value in catalog.items()}


def _storage(options: Options) -> dict[str, str]:
    return {
        name.removeprefix("storage."): value
        for name, value in options.items()
        if name.startswith(("storage.", "catalog."))
    }


def _rows(options: Options, *, quarantine: bool) -> pa.Table:
    suffix = "_quarantine" if quarantine else ""
    if options["path"].startswith("s3://"):
        rows = DeltaTable(options["path"] + suffix, storage_options=_storage(options)).to_pyarrow_table()
    else:
        catalog, namespace, table = options["path"].split(".")
        opened = open_catalog(catalog, _storage(options))
        rows = opened.load_table((namespace, table + suffix)).scan().to_arrow()
    return rows.sort_by([("partition", "ascending"), ("offset", "ascending")])
