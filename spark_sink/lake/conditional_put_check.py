"""Checks that an object store refuses to overwrite a log entry: compare and swap depends on it.

delta-rs creates every log entry with `If-None-Match: *`, whatever its options say. S3 itself, Azure and Google keep
this condition. Some S3-compatible stores ignore it without an error, and agents then overwrite each other's commits.
"""

import contextlib
import logging
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta

from spark_sink.errors import OptionError, TableError
from spark_sink.lake.table_addresses import Storage, split_address

CHECK = "azimuth_check_conditional_put"
PutTwice = Callable[[str, Storage, str], bool | None]

_log = logging.getLogger("azimuth.sink")
_PROBE = "_azimuth_probe"  # Delta readers and VACUUM pass over names with an underscore
_ENDPOINTS = ("aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint")
_CONFIG = (
    "access_key_id",
    "secret_access_key",
    "session_token",
    "token",
    "region",
    "default_region",
    "virtual_hosted_style_request",
    "skip_signature",
)
_LOCK = threading.Lock()
_CHECKED: set[tuple[str, str]] = set()  # endpoint and bucket


def refuse_overwriting_store(uri: str, storage: Storage, put_twice: PutTwice | None = None) -> None:
    """Refuse a store that overwrites an object although the request forbids it; asks each bucket once per process.

    Args:
        uri: address of the table.
        storage: options of the object store; `azimuth_check_conditional_put=false` skips the check.
        put_twice: creates an object twice, and returns whether the store accepted both; None if the store did not
            answer, and then the next call asks again.

    Raises:
        OptionError: the option is neither true nor false.
        TableError: the store overwrites.
    """
    endpoint = doubtful_endpoint(uri, storage, os.environ)
    if endpoint is None:
        return
    key = endpoint, split_address(uri).netloc
    with _LOCK:
        if key in _CHECKED:
            return
        overwrites = (put_twice or _accepts_both)(uri, storage, endpoint)
        if overwrites:
            raise TableError(
                f"{uri}: the object store at {endpoint} overwrites an object although the request forbids it "
                "(If-None-Match), so agents would overwrite each other's commits; nothing was written. Use a store "
                f"with conditional writes; for a table with one writer, storage option {CHECK}=false skips this check"
            )
        if overwrites is not None:
            _CHECKED.add(key)


def doubtful_endpoint(uri: str, storage: Storage, environment: Mapping[str, str]) -> str | None:
    """Return the endpoint of a store that may overwrite; None for folders and for stores known to keep the condition.

    Raises:
        OptionError: the option that skips the check is neither true nor false.
    """
    given = {name.lower(): value for name, value in storage.items()}
    asked = given.get(CHECK, "true").lower()
    if asked not in {"true", "false"}:
        raise OptionError(f"storage option {CHECK!r}: {given[CHECK]!r}, need true or false")
    if asked == "false" or split_address(uri).scheme != "s3":
        return None
    known = {name.lower(): value for name, value in environment.items() if name.startswith("AWS_")} | given
    endpoint = next((known[name] for name in _ENDPOINTS if known.get(name)), None)
    host = (split_address(endpoint).hostname or "") if endpoint else "amazonaws.com"
    return None if f".{host}".endswith((".amazonaws.com", ".amazonaws.com.cn")) else endpoint


def _accepts_both(uri: str, storage: Storage, endpoint: str) -> bool | None:
    # Imported here: only stores with an endpoint of their own need it.
    import obstore  # noqa: PLC0415
    from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PreconditionError  # noqa: PLC0415
    from obstore.store import S3Store  # noqa: PLC0415

    given = {name.lower().removeprefix("aws_"): value for name, value in storage.items()}
    place = split_address(uri)
    store = S3Store(
        place.netloc,
        prefix=place.path.strip("/"),
        # Some stores have no request that deletes several objects.
        config={"endpoint": endpoint, "disable_bulk_delete": "true"}  # type: ignore[arg-type]  # texts, as delta-rs takes them
        | {name: given[name] for name in _CONFIG if name in given},
        client_options={"allow_http": endpoint.startswith("http://")},
        retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
    )
    path = f"{_PROBE}/{uuid.uuid4()}"
    try:
        for _ in range(2):
            obstore.put(store, path, b"azimuth", mode="create", use_multipart=False)
    except (AlreadyExistsError, PreconditionError):
        return False
    except (BaseError, OSError, ValueError, NotImplementedError) as error:
        # The store refuses such requests, and with them delta-rs' commits; or it has other credentials for this client.
        _log.warning("%s: conditional writes could not be checked: %s", uri, str(error).splitlines()[0])
        return None if isinstance(error, (GenericError, OSError)) else False  # no answer, such as a timeout
    else:
        return True
    finally:
        with contextlib.suppress(BaseError, OSError):
            obstore.delete(store, path)
