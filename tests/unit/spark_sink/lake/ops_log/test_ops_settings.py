"""The address of an ops log is none that a data table has or may get."""

from pathlib import Path

import pytest

from spark_sink.errors import OptionError
from spark_sink.lake.ops_log.ops_settings import OpsSettings


@pytest.mark.parametrize(
    ("ops", "table"),
    [
        ("lake/t", "lake/t"),
        ("lake/t/", "lake/t"),
        ("lake/ops", "lake/{topic}"),  # a topic may be called ops
        ("lake", "lake/{topic}"),
        ("lake/ops/log", "lake/{topic}"),
        ("lake/x_raw", "lake/{topic}_raw"),
        ("lake/a/b", "lake/{cluster}/{topic}"),
        ("lake/t/_ops", "lake/t"),
        ("s3a://bucket/lake/", "s3://bucket/lake/{topic}"),
        ("s3://bucket/lake/ops", "s3://bucket/{topic}"),
    ],
)
def test_an_address_that_a_table_may_get_is_refused(
    ops: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic of that table could not be written any more; and files of one table would lie in another's folder."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="is at, above or below an address of the tables"):
        OpsSettings(table=ops).refuse_near([table])


@pytest.mark.parametrize(
    ("ops", "table"),
    [
        ("ops", "lake/{topic}"),
        ("lake/ops", "lake/raw/{topic}"),
        ("lake/ops", "lake/{topic}_raw"),
        ("lake/ops", "lake/t"),
        ("lake/to", "lake/t"),
        ("s3://other/lake/ops", "s3://bucket/lake/{topic}"),
    ],
)
def test_any_other_address_is_taken(ops: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside the tables."""
    monkeypatch.chdir(tmp_path)
    OpsSettings(table=ops).refuse_near([table])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"table": "t_quarantine"}, "the ops log would go to .*t_quarantine"),
        ({"table": "{topic}"}, "one for all topics"),
        ({"table": "iceberg://main.ops.log"}, "is an Iceberg table"),
        ({"table": "t", "every_s": 0.5}, "ops_log_s=0.5, need 1 to 3600"),
        ({"table": "t", "every_s": float("nan")}, "ops_log_s=nan"),
        ({"table": "t", "keep_days": 0}, "ops_log_days=0"),
        ({"table": "t", "keep_days": 36_501}, "ops_log_days=36501, need a whole number, 1 to 36500"),
        ({"table": "t", "keep_days": True}, "ops_log_days=True"),
    ],
)
def test_a_setting_without_a_meaning_is_refused(given: dict[str, object], says: str) -> None:
    """In one sentence, before anything starts."""
    with pytest.raises(OptionError, match=says):
        OpsSettings(**given)  # type: ignore[arg-type]  # what a file may hold
