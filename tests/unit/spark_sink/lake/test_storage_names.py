"""Names of storage options: a near miss of a known name is refused, and no name of a backend is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest

from spark_sink.errors import OptionError
from spark_sink.lake.storage_names import _CATALOG, _STORES, refuse_misspelt
from spark_sink.lake.table_addresses import storage_options

_CONFIGS = {"S3Config": "aws_", "AzureConfig": "azure_", "GCSConfig": "google_", "ClientConfig": ""}


def _obstore_names() -> Iterator[str]:
    """The names in obstore's stubs, with and without a prefix; delta-rs and obstore use the same Rust crate."""
    for stub in Path(obstore.__file__).parent.glob("_store/*.pyi"):
        for one in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))):
            if isinstance(one, ast.ClassDef) and one.name in _CONFIGS:
                names = [
                    part.target.id
                    for part in one.body
                    if isinstance(part, ast.AnnAssign)
                    if isinstance(part.target, ast.Name)
                ]
                yield from names
                yield from (f"{_CONFIGS[one.name]}{name}" for name in names if not name.startswith(_CONFIGS[one.name]))


def test_no_name_of_the_crate_is_refused() -> None:
    """A newer crate has more names; one that is near a known name has to be listed."""
    names = sorted(set(_obstore_names()))
    assert {"aws_region", "azure_sas_key", "google_base_url", "allow_http"} <= set(names)
    refuse_misspelt([*names, *map(str.upper, names)])


@pytest.mark.parametrize("known", [_STORES, _CATALOG], ids=["stores", "catalogs"])
def test_each_known_name_is_accepted(known: frozenset[str]) -> None:
    """Many of them are near each other, such as `sas_key` and `sas_token` with the same prefix."""
    refuse_misspelt(known if known is _STORES else {f"catalog.{name}" for name in known})


@pytest.mark.parametrize(
    "name",
    [
        "unity_client_secret",
        "unity_use_azure_cli",
        "aws_shared_credentials_file",
        "aws_max_attempts",
        "aws_ca_bundle",
        "lakefs_endpoint",
        "oss_endpoint",
        "dfs.namenode.rpc-address",
        "x",
        "catalog.header.X-Iceberg-Access-Delegation",
        "catalog.my-own.setting",
        "catalog.s3tables.region",
    ],
)
def test_a_name_of_another_backend_is_accepted(name: str) -> None:
    """Neither delta-rs nor pyiceberg lists the names of all backends."""
    refuse_misspelt([name])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("AWS_REGON", "AWS_REGION"),
        ("aws_access_key", "aws_access_key_id"),
        ("AWS_ENDPOINT_URI", "AWS_ENDPOINT_URL"),
        ("alow_http", "allow_http"),
        ("allow-http", "allow_http"),
        ("azure_storage_acount_key", "azure_storage_account_key"),
        ("google_service_acount", "google_service_account"),
        ("azimuth_check_conditional_puts", "azimuth_check_conditional_put"),
        ("catalog.s3.acces-key-id", "s3.access-key-id"),
        ("catalog.warehose", "warehouse"),
        ("catalog.s3.Region", "s3.region"),
    ],
)
def test_a_near_miss_is_refused_with_the_known_name(name: str, meant: str) -> None:
    """delta-rs and pyiceberg pass over it, and the store answers with an error of another cause, or another region."""
    with pytest.raises(OptionError, match=f"option .* knows no such option of a .*; did you mean '{meant}'"):
        refuse_misspelt([name])
    with pytest.raises(OptionError, match=meant):
        storage_options({name if name.startswith("catalog.") else f"storage.{name}": "x"})
