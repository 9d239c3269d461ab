"""The contract of the seam holds for tables in S3, as it does for those in a local folder."""

import uuid
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import pytest

from tests.integration.spark_sink.small_servers import BUCKET
from tests.table_kinds import Bucket, Kind, kind_of
from tests.unit.spark_sink.lake import test_table_contract as contract

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FORMATS = ("delta", "iceberg", "iceberg by partition")
PROPERTIES: tuple[Callable[[Kind], None], ...] = tuple(
    test for name, test in vars(contract).items() if name.startswith("test_") and "kind" in signature(test).parameters
)


@pytest.fixture
def bucket(endpoint: str) -> Callable[[], Bucket]:
    """Return a new place in the bucket."""
    user, key, region = "someone", "secret", "us-east-1"
    delta = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": region}
    delta |= {"AWS_ACCESS_KEY_ID": user, "AWS_SECRET_ACCESS_KEY": key}
    iceberg = {"endpoint": endpoint, "region": region, "access-key-id": user, "secret-access-key": key}
    catalog = {f"catalog.s3.{name}": value for name, value in iceberg.items()}
    return lambda: Bucket(address=f"s3://{BUCKET}/{uuid.uuid4().hex}", delta=delta, iceberg=catalog)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda one: one.__name__.removeprefix("test_"))
def test_each_property_of_a_table_holds_in_s3(
    holds: Callable[[Kind], None], format_: str, bucket: Callable[[], Bucket], tmp_path: Path
) -> None:
    """The tests of the contract, on other storage."""
    holds(kind_of(format_, tmp_path, bucket()))


@pytest.mark.parametrize("format_", FORMATS)
def test_every_record_is_there_once_in_s3_whatever_writers_do(format_: str, bucket: Callable[[], Bucket]) -> None:
    """The machine of the contract: zombies, repeated batches, lost answers and other writers between two steps."""
    contract.run_writers(format_, 3, 12, bucket=bucket)
