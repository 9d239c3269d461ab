"""Results of pure functions of the code under test, kept from schedule to schedule.

A schedule calls them a few hundred times with the few schemas, options and log entries that all schedules have. They
reach no store, no group and no clock, so a kept result changes no step of a schedule.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import Any

import spark_sink.lake.compaction as compaction_module
import spark_sink.lake.delta_log_reader as transactions_module
import spark_sink.lake.delta_table as delta_table_module
import spark_sink.sink.direct_landing as direct_module
import spark_sink.sink.query_tables as tables_module
import spark_sink.sink.rows_by_table as rows_module
from spark_sink.formats.bad_values_quarantined import good_schema
from spark_sink.formats.variant_type import arrow_columns
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.schema_fit import refuse_unenforced
from spark_sink.sink.sink_options import SinkOptions

_MOST = 20_000  # log entries, which hold the names of files, and so differ between schedules


def kept_of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Keep the results of a function of one schema, which is one object in all schedules."""
    kept: dict[int, tuple[object, Any]] = {}

    def once(schema: object) -> Any:
        found = kept.get(id(schema))
        if found is None:
            found = kept[id(schema)] = schema, function(schema)  # the schema too, so that no other one gets its id
        return found[1]

    return once


_options = lru_cache(maxsize=100)(lambda given: SinkOptions.parse(dict(given)))
_loads = lru_cache(_MOST)(json.loads)
_arrow_schema = kept_of(lambda schema: normal_schema(arrow_columns(schema)))
_arrow_columns = kept_of(arrow_columns)
_good_schema = kept_of(good_schema)
_columns = kept_of(direct_module._columns)

_unruled: dict[int, object] = {}


def parsed_options(given: dict[str, str]) -> SinkOptions:
    """Options of the sink."""
    return _options(tuple(given.items()))


def _refuse_unenforced(uri: str, handle: Any) -> None:
    """Look for rules once per schema; a table in memory has no properties."""
    schema = handle.schema()
    if id(schema) not in _unruled:
        refuse_unenforced(uri, handle)
        _unruled[id(schema)] = schema


def pure_functions() -> Iterator[tuple[ModuleType, str, object]]:
    """Which names of which modules stand for kept results."""
    yield delta_table_module, "_arrow_schema", lambda handle: _arrow_schema(handle.schema())
    yield delta_table_module, "refuse_unenforced", _refuse_unenforced
    yield transactions_module, "json", SimpleNamespace(loads=_loads)
    yield direct_module, "SinkOptions", SimpleNamespace(parse=parsed_options)
    yield direct_module, "_columns", _columns
    yield compaction_module, "arrow_columns", _arrow_columns
    for module in (rows_module, tables_module):
        yield module, "good_schema", _good_schema
