"""A Hive catalog whose commits are compared and swapped by the metastore; imports pyiceberg, which loads slowly.

pyiceberg commits under a lock of the metastore: it reads the table, checks the requirements and alters the table.
The metastore takes the lock away from a writer that sends nothing for `metastore.txn.timeout` (5 minutes by default).
A writer that was stopped for longer, between its read and its alter, would overwrite the commits of other writers. So
each alter here names the metadata file that was read, and the metastore refuses it if the table has another one
(HIVE-26882, Hive 4.0 and 2.3.10). Older metastores ignore this.

In pyiceberg, one connection is shared by all threads of a process and waits for an answer without end, and a table is
read by a method that Hive 4 does not have. Here each use has a connection of its own, with a time limit.
"""

import logging
import random
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlparse

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    CheckLockRequest,
    EnvironmentContext,
    GetTableRequest,
    GetTablesRequest,
    LockResponse,
    LockState,
    MetaException,
)
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.catalog import METADATA_LOCATION, URI
from pyiceberg.catalog.hive import (
    HIVE_KERBEROS_AUTH,
    HIVE_KERBEROS_AUTH_DEFAULT,
    HIVE_KERBEROS_SERVICE_NAME,
    HIVE_KERBEROS_SERVICE_NAME_DEFAULT,
    LOCK_CHECK_MAX_WAIT_TIME,
    LOCK_CHECK_MIN_WAIT_TIME,
    LOCK_CHECK_RETRIES,
    HiveCatalog,
)
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.utils.properties import property_as_bool
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TSaslClientTransport, TTransportException

from spark_sink.errors import TableError

ANSWER_S = 60.0
LOCK_S = 120.0  # three attempts of a commit outlast the 5 minutes after which the metastore drops a dead writer's lock
NOTICE_S = 10.0
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.2
_LONGEST_PARAMETER = (
    32_672  # as Iceberg's `iceberg.hive.table-property-max-size`: metastores limit a parameter's length
)
_CHANGED = "has been modified"
_INCOMPARABLE = "Comparisons between 'CLOB"
_DERBY = (
    "the metastore's database is Derby, which cannot compare the table's metadata file; commits are protected by the "
    "metastore's lock only. Use another database for production"
)
_LOCK_OPTIONS = {LOCK_CHECK_MIN_WAIT_TIME, LOCK_CHECK_MAX_WAIT_TIME, LOCK_CHECK_RETRIES}
_log = logging.getLogger("azimuth.sink")


class FencedClient(Client):  # type: ignore[misc]  # generated code without types
    """A client of the metastore that alters only the version of a table that it read last."""

    _seen: str | None = None

    def __init__(self, protocol: TBinaryProtocol, lacks_fence: threading.Event) -> None:
        super().__init__(protocol)
        self.lacks_fence = lacks_fence

    def get_table(self, dbname: str, tbl_name: str) -> HiveTable:
        """Read a table with the request that every Hive since 2.3 has."""
        table = self.get_table_req(GetTableRequest(dbName=dbname, tblName=tbl_name)).table
        self._seen = (table.parameters or {}).get(METADATA_LOCATION)
        return table

    def get_table_objects_by_name(self, dbname: str, tbl_names: list[str]) -> list[HiveTable]:
        """Read tables with the request that every Hive since 2.3 has."""
        found: list[HiveTable] = self.get_table_objects_by_name_req(
            GetTablesRequest(dbName=dbname, tblNames=tbl_names)
        ).tables
        return found

    def create_table(self, tbl: HiveTable) -> None:
        """Create a table without the parameters that are too long for the metastore."""
        super().create_table(_short(tbl))

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: HiveTable, environment_context: EnvironmentContext
    ) -> None:
        """Alter the table if it still has the metadata file that was read.

        Raises:
            CommitFailedException: it has another one.
        """
        expected = {"expected_parameter_key": METADATA_LOCATION, "expected_parameter_value": self._seen}
        fenced = EnvironmentContext(properties={**environment_context.properties, **expected})
        alter = partial(super().alter_table_with_environment_context, dbname, tbl_name, _short(new_tbl))
        try:
            alter(environment_context if self._seen is None or self.lacks_fence.is_set() else fenced)
        except MetaException as error:
            said = str(error.message)
            if _CHANGED in said:
                raise CommitFailedException(f"the metastore refused the commit: {said}") from error
            if _INCOMPARABLE not in said:
                raise
            # Nothing was changed, and the lock is still there.
            self.lacks_fence.set()
            _log.warning(_DERBY)
            alter(environment_context)


class _Connections:
    """Opens a connection for each `with`, to the first metastore that accepts one; threads share nothing."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._open = threading.local()
        self._lacks_fence = threading.Event()

    def __enter__(self) -> FencedClient:
        refused: TTransportException | None = None
        for uri in self._properties[URI].split(","):
            transport = self._transport(uri.strip())
            try:
                transport.open()
            except TTransportException as error:
                refused = error
                continue
            client = FencedClient(TBinaryProtocol(transport), self._lacks_fence)
            if ugi := self._properties.get("ugi"):
                client.set_ugi(*ugi.split(":"))
            vars(self._open).setdefault("transports", []).append(transport)
            return client
        raise refused or TTransportException(message=f"no address in {self._properties[URI]!r}")

    def __exit__(self, *_: object) -> None:
        self._open.transports.pop().close()

    def _transport(self, uri: str) -> Any:  # noqa: ANN401 -- thrift has no types
        parts = urlparse(uri)
        socket = TSocket(parts.hostname, parts.port)
        socket.setTimeout(ANSWER_S * 1000)
        if not property_as_bool(dict(self._properties), HIVE_KERBEROS_AUTH, HIVE_KERBEROS_AUTH_DEFAULT):
            return TBufferedTransport(socket)
        service = self._properties.get(HIVE_KERBEROS_SERVICE_NAME, HIVE_KERBEROS_SERVICE_NAME_DEFAULT)
        return TSaslClientTransport(socket, host=parts.hostname, service=service)


class FencedHiveCatalog(HiveCatalog):
    """A Hive catalog that no writer can overwrite, whose requests fail if no byte comes for `ANSWER_S`."""

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> Any:  # noqa: ANN401 -- stands for pyiceberg's client
        return _Connections(properties)

    def _wait_for_lock(self, database_name: str, table_name: str, lockid: int, open_client: Client) -> LockResponse:
        """Wait for the lock for `LOCK_S`; the options `lock-check-*` bring back pyiceberg's own waiting.

        pyiceberg asks after 2, 6 and 14 s. The metastore gives a lock to the writers in their order, when they ask, so
        all writers behind the first one would wait, too.

        Raises:
            TableError: another writer has held the lock for that time.
        """
        if self.properties.keys() & _LOCK_OPTIONS:
            return super()._wait_for_lock(database_name, table_name, lockid, open_client)
        begun, pause_s, noticed = time.monotonic(), _PAUSE_S, False
        while True:
            answer: LockResponse = open_client.check_lock(CheckLockRequest(lockid=lockid))
            if answer.state == LockState.ACQUIRED:
                return answer
            if answer.state != LockState.WAITING:
                raise CommitFailedException(f"the metastore ended the wait for the lock, state {answer.state}")
            waited_s = time.monotonic() - begun
            held = (
                f"another writer has held the metastore's lock on {database_name}.{table_name} for {waited_s:.0f} s; "
                "if it was killed, the metastore removes it after metastore.txn.timeout (5 minutes by default)"
            )
            if waited_s > LOCK_S:
                raise TableError(held)
            if waited_s > NOTICE_S and not noticed:
                noticed = True
                _log.warning("%s.%s: %s", self.name, table_name, held)
            time.sleep(random.uniform(pause_s / 2, pause_s))  # noqa: S311 -- spreads writers
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _short(table: HiveTable) -> HiveTable:
    """Leave out the parameters that a metastore may refuse for their length; the table's metadata file has them."""
    table.parameters = {name: value for name, value in table.parameters.items() if len(value) <= _LONGEST_PARAMETER}
    return table
