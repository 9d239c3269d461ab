"""A catalog whose driver is not installed."""

import sys

import pytest

from spark_sink.errors import OptionError
from spark_sink.lake.iceberg.catalogs import open_catalog


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("mysql://u@localhost/catalog", r"MySQLdb.*; name the driver in catalog\.uri, as in .*mysql\+pymysql://"),
        ("mysql+mysqldb://u@localhost/catalog", r"a package is missing: .*MySQLdb.* in sys\.modules$"),
    ],
    ids=["default driver", "named driver"],
)
def test_the_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch, uri: str, says: str) -> None:
    """The sentence of pyiceberg says for all that SQLAlchemy is not installed, and names another driver."""
    monkeypatch.setitem(sys.modules, "MySQLdb", None)
    with pytest.raises(OptionError, match=says) as caught:
        open_catalog("lake", {"catalog.type": "sql", "catalog.uri": uri})
    assert "pyiceberg[" not in str(caught.value)
