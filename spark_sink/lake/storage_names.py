"""Refuses mistyped names among the options of an object store or a catalog, which would have no effect. Pure.

delta-rs and pyiceberg pass over a name that they do not know, because options of other backends may be among them. So
a name is refused only if it is near a known one: it is hardly ever the name of something else.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

from spark_sink.errors import OptionError

_NEAR: Final = 0.88
"""Least similarity (difflib): one wrong letter of five. Names of other backends known to us are below it."""
_CATALOG_PREFIX: Final = "catalog."
_HEADER: Final = "header."  # of pyiceberg's REST catalog, followed by any name

_CLIENT: Final = """
allow_http allow_invalid_certificates connect_timeout default_content_type default_headers http1_only http2_only
http2_keep_alive_interval http2_keep_alive_timeout http2_keep_alive_while_idle http2_max_frame_size pool_idle_timeout
pool_max_idle_per_host proxy_ca_certificate proxy_excludes proxy_url randomize_addresses read_timeout root_certificate
timeout user_agent
"""
_S3: Final = """
access_key_id bucket bucket_name checksum_algorithm conditional_put container_authorization_token_file
container_credentials_full_uri container_credentials_relative_uri copy_if_not_exists default_region disable_bulk_delete
disable_tagging endpoint endpoint_url endpoint_url_s3 endpoint_url_sts imdsv1_fallback metadata_endpoint region
request_payer role_arn role_session_name s3_express secret_access_key server_side_encryption session_token
skip_signature sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id token unsigned_payload
virtual_hosted_style_request web_identity_token_file
"""
_AZURE: Final = """
access_key account_key account_name authority_host authority_id bearer_token client_id client_secret container_name
credential_type disable_tagging encryption_key endpoint fabric_cluster_identifier fabric_session_token
fabric_token_service_url fabric_workload_host federated_token_file identity_endpoint master_key msi_endpoint
msi_resource_id object_id sas_key sas_token skip_signature tenant_id token use_azure_cli use_emulator
use_fabric_endpoint
"""
_AZURE_STORAGE: Final = """
access_key account_key account_name authority_host authority_id client_id client_secret encryption_key endpoint
master_key sas_key sas_token tenant_id token use_emulator
"""
_GOOGLE: Final = """
application_credentials base_url bearer_token bucket bucket_name service_account service_account_key
service_account_path skip_signature
"""
_DELTA_RS: Final = """
allow_unsafe_rename aws_access_key_id_dynamodb aws_ec2_metadata_disabled aws_ec2_metadata_timeout
aws_endpoint_url_dynamodb aws_force_credential_load aws_iam_role_arn aws_iam_role_session_name aws_profile
aws_region_dynamodb aws_s3_addressing_style aws_s3_allow_unsafe_rename aws_s3_assume_role_arn aws_s3_endpoint
aws_s3_get_internal_server_error_retries aws_s3_locking_provider aws_s3_pool_idle_timeout_seconds
aws_s3_role_session_name aws_secret_access_key_dynamodb aws_session_token_dynamodb aws_sts_pool_idle_timeout_seconds
aws_sts_endpoint aws_sts_regional_endpoints backoff_config.base backoff_config.init_backoff backoff_config.max_backoff
concurrency_limit delta_dynamo_billing_mode delta_dynamo_max_elapsed_request_time delta_dynamo_table_name max_retries
mount_allow_unsafe_rename object_store_concurrency_limit retry_timeout
"""
_PYICEBERG: Final = """
adls.account-host adls.account-key adls.account-name adls.anon adls.blob-storage-authority adls.blob-storage-scheme
adls.client-id adls.client-secret adls.connection-string adls.credential adls.dfs-storage-authority
adls.dfs-storage-scheme adls.sas-token adls.tenant-id adls.token audience auth.manager client.access-key-id
client.profile-name client.region client.role-arn client.role-session-name client.secret-access-key
client.session-token credential dynamodb.access-key-id dynamodb.profile-name dynamodb.region
dynamodb.secret-access-key dynamodb.session-token echo gcs.access gcs.cache-timeout gcs.consistency
gcs.default-bucket-location gcs.oauth2.token gcs.oauth2.token-expires-at gcs.project-id gcs.requester-pays
gcs.service.host gcs.session-kwargs gcs.version-aware glue.access-key-id glue.endpoint glue.id glue.max-retries
glue.profile-name glue.region glue.retry-mode glue.secret-access-key glue.session-token glue.skip-archive hdfs.host
hdfs.kerberos_ticket hdfs.port hdfs.user hf.endpoint hf.token hive.hive2-compatible hive.kerberos-authentication
hive.kerberos-service-name init_catalog_tables lock-check-max-wait-time lock-check-min-wait-time lock-check-retries
namespace-separator
oauth2-server-uri pool_pre_ping prefix py-catalog-impl py-io-impl resource rest-page-size rest.signing-name
rest.signing-region rest.sigv4-enabled rest.sigv4.max-retries s3.access-key-id s3.anonymous s3.connect-timeout
s3.endpoint s3.force-virtual-addressing s3.profile-name s3.proxy-uri s3.region s3.request-timeout s3.resolve-region
s3.retry-strategy-impl s3.role-arn s3.role-session-name s3.secret-access-key s3.server-side-encryption
s3.session-token s3.signer s3.signer.endpoint s3.signer.uri s3.sse-kms-key-id scan-planning-mode scope
snapshot-loading-mode table-name token type ugi uri view-endpoints-supported warehouse
"""


def _names(text: str, *prefixes: str) -> frozenset[str]:
    return frozenset(f"{prefix}{name}" for name in text.split() for prefix in prefixes or ("",))


_CATALOG: Final = _names(_PYICEBERG)
_STORES: Final = (
    _names(_CLIENT, "", "aws_", "azure_", "google_")
    | _names(_S3, "", "aws_")
    | _names(_AZURE, "", "azure_")
    | _names(_AZURE_STORAGE, "azure_storage_")
    | _names(_GOOGLE, "", "google_")
    | _names(_DELTA_RS)
    | {"azimuth_check_conditional_put"}
)


def refuse_misspelt(names: Iterable[str]) -> None:
    """Refuse a name of an option that is unknown and near a known one.

    Args:
        names: of options of an object store, in any case; those that begin with `catalog.` are pyiceberg's.

    Raises:
        OptionError: it is such a name; the message proposes the known one.
    """
    for name in names:
        if name.startswith(_CATALOG_PREFIX):
            _refuse_in_catalog(name.removeprefix(_CATALOG_PREFIX))
        elif (found := _near(name.lower(), _STORES)) is not None:
            meant = found.upper() if name.isupper() else found
            raise OptionError(f"option {name!r}: delta-rs knows no such option of a store; did you mean {meant!r}?")


def check_storage_names(options: dict[str, str]) -> dict[str, str]:
    """Return options of an object store without a mistyped name, for a model of settings.

    Raises:
        ValueError: as `refuse_misspelt`.
    """
    try:
        refuse_misspelt(options)
    except OptionError as error:
        raise ValueError(str(error)) from error
    return options


def check_catalog_names(options: dict[str, str]) -> dict[str, str]:
    """Return options of a catalog, named without `catalog.`, as `check_storage_names`."""
    check_storage_names({f"{_CATALOG_PREFIX}{name}": value for name, value in options.items()})
    return options


def _refuse_in_catalog(name: str) -> None:
    if name.startswith(_HEADER) or (found := _near(name, _CATALOG)) is None:
        return
    raise OptionError(f"option {name!r}: pyiceberg knows no such option of a catalog; did you mean {found!r}?")


def _near(name: str, known: Collection[str]) -> str | None:
    if name in known:
        return None
    return next(iter(get_close_matches(name, known, n=1, cutoff=_NEAR)), None)
