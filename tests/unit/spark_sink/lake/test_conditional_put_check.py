"""A store that overwrites log entries is refused before the first commit; others are not asked, or asked once."""

from collections.abc import Mapping

import pytest

from spark_sink.errors import OptionError, TableError
from spark_sink.lake import conditional_put_check
from spark_sink.lake.conditional_put_check import CHECK, doubtful_endpoint, refuse_overwriting_store

MINIO = {"AWS_ENDPOINT_URL": "http://minio:9000"}


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No store has been checked."""
    monkeypatch.setattr(conditional_put_check, "_CHECKED", set())


@pytest.mark.parametrize(
    ("uri", "storage", "environment", "endpoint"),
    [
        ("/lake/t", MINIO, {}, None),
        ("gs://lake/t", MINIO, {}, None),
        ("abfss://lake/t", {}, {"AWS_ENDPOINT_URL": "http://minio"}, None),
        ("s3://lake/t", {}, {}, None),
        ("s3://lake/t", {"endpoint": "https://vpce-1.s3.eu-central-1.vpce.amazonaws.com"}, {}, None),
        ("s3://lake/t", {"endpoint": "https://notamazonaws.com"}, {}, "https://notamazonaws.com"),
        ("s3://lake/t", MINIO, {}, "http://minio:9000"),
        ("s3://lake/t", {}, {"AWS_ENDPOINT": "http://ceph"}, "http://ceph"),
        ("s3://lake/t", MINIO, {"AWS_ENDPOINT_URL": "http://ceph"}, "http://minio:9000"),
        ("s3://lake/t", MINIO | {CHECK.upper(): "False"}, {}, None),
        # delta-rs sends the condition whatever these say, so they change nothing.
        ("s3://lake/t", MINIO | {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {}, "http://minio:9000"),
    ],
)
def test_only_stores_that_may_overwrite_are_doubtful(
    uri: str, storage: Mapping[str, str], environment: Mapping[str, str], endpoint: str | None
) -> None:
    """A check costs three requests, and needs the right to delete."""
    assert doubtful_endpoint(uri, storage, environment) == endpoint


def test_a_store_that_overwrites_is_refused_each_time_and_another_is_asked_once() -> None:
    """An agent that retries must not commit the second time."""
    asked: list[str] = []

    def put_twice(uri: str, _: Mapping[str, str], __: str) -> bool:
        asked.append(uri)
        return "bad" in uri

    for table in ("s3://good/a", "s3://good/b"):
        refuse_overwriting_store(table, MINIO, put_twice)
    for _ in range(2):
        with pytest.raises(TableError, match=r"s3://bad/a: the object store at http://minio:9000 overwrites .*=false"):
            refuse_overwriting_store("s3://bad/a", MINIO, put_twice)
    assert asked == ["s3://good/a", "s3://bad/a", "s3://bad/a"]


def test_a_store_that_did_not_answer_is_asked_again() -> None:
    """A timeout at the first commit says nothing about the store."""
    answers = [None, True, None, False]
    asked: list[bool | None] = []

    def put_twice(*_: object) -> bool | None:
        asked.append(answers[len(asked)])
        return asked[-1]

    refuse_overwriting_store("s3://lake/a", MINIO, put_twice)
    with pytest.raises(TableError, match="overwrites"):
        refuse_overwriting_store("s3://lake/a", MINIO, put_twice)
    for _ in range(3):
        refuse_overwriting_store("s3://lake/a", MINIO, put_twice)
    assert asked == answers


def test_an_option_that_is_no_truth_value_is_refused() -> None:
    """`no` must not be taken for a yes."""
    with pytest.raises(OptionError, match="azimuth_check_conditional_put': 'no', need true or false"):
        refuse_overwriting_store("s3://lake/a", MINIO | {CHECK: "no"})
