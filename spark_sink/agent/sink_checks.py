"""The questions of `azimuth sink`: all of them with `--check`, and all but the agent's name before each start."""

import logging
from dataclasses import replace
from functools import partial

import pyarrow as pa

from assignors.clients import shown
from spark_sink.agent.agent_name_lock import only_agent_of_its_checkpoint, only_agent_of_its_name
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.checkpoint_of_table import refuse_damaged, refuse_other_table
from spark_sink.checks import (
    ANSWER_S,
    BrokerChecks,
    Check,
    Finding,
    State,
    check_registry,
    check_table,
    check_writable,
    ops_checks,
    port_checks,
    run,
    selects,
)
from spark_sink.errors import OptionError, StartError
from spark_sink.fetch.raw_columns import arrow_schema, schema_without
from spark_sink.formats.bad_values_quarantined import good_schema
from spark_sink.kafka.group_lag import admin
from spark_sink.lake.iceberg.partition_terms import check_terms
from spark_sink.lake.mistaken_addresses import refuse_mistaken
from spark_sink.lake.parquet_landing import check_partition_columns
from spark_sink.lake.table_addresses import PLACEHOLDER, folder_of_spark, local_path, with_name
from spark_sink.lake.table_contract import KEYS
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_decoders import make_value_decoder
from spark_sink.options.value_format import TABLE_SCHEMA
from spark_sink.sink.rows_by_table import landed_schema
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source.name_fence import same_name

_log = logging.getLogger("azimuth.sink")
# A slow broker must not end a start; a refused connection is reported at once nevertheless.
_START_ANSWER_S, _START_S = 15.0, 20.0


def check_options(settings: AgentSettings) -> None:
    """Check every option before the JVM starts, which takes ten seconds and wraps the errors of its processes.

    Raises:
        OptionError: an option is unknown or invalid, or the checkpoint is a file or in the table's folder.
        SchemaError: a partition column is not among the columns.
        LagError: a property of the Kafka client is unknown or invalid.
    """
    land = settings.landing == "direct" and not settings.decodes
    source = SourceOptions.parse(settings.source_options(land=land))
    sink = SinkOptions.parse(settings.sink_options())
    if (columns := _columns(source)) is not None:
        check_partition_columns(columns, sink.table.layout.partition_columns)
        check_terms(columns, sink.table.terms)
    _refuse_folder(settings)
    admin(settings.admin_options())
    _ = settings.ops  # raises OptionError


def run_checks(settings: AgentSettings) -> list[Finding]:
    """Run the checks of `--check`.

    Raises:
        OptionError, LagError: as `check_options`.
    """
    check_options(settings)
    found = [
        replace(one, ask=lambda: _free_checkpoint(settings)) if one.subject == "checkpoint" else one
        for one in planned_checks(settings)
    ]
    return run([*found, Check(subject="name", place="the group", ask=lambda: _free_name(settings), after="brokers")])


def refuse_faults(settings: AgentSettings) -> None:
    """Check brokers, rights, registry and table before Spark starts; log faults that may end by themselves.

    Raises:
        StartError: there is a fault that does not end by itself.
    """
    faults = []
    for one in run(planned_checks(settings, _START_ANSWER_S), _START_S):
        if one.state is State.FAULT:
            faults.append(one.text)
        elif one.state is State.LATER:
            _log.warning("check: %s", one.text)
    if faults:
        raise StartError("; ".join(faults))


def planned_checks(settings: AgentSettings, answer_s: float = ANSWER_S) -> list[Check]:
    """Return the checks of brokers, topics, the group, the registry, the table and the checkpoint.

    Args:
        settings: settings of the agent.
        answer_s: longest wait for one answer of the brokers; if it is longer than the default, a catalog that cannot
            answer for the moment is asked again, too.
    """
    options = SourceOptions.parse(settings.source_options())
    brokers = BrokerChecks(settings.admin_options(), "--bootstrap-servers and --kafka", answer_s)
    servers, group, patient = brokers.servers, options.group, answer_s > ANSWER_S
    found = [
        Check(subject="brokers", place=servers, ask=brokers.reached),
        Check(subject="topics", place=servers, ask=lambda: _topics(brokers, options), after="brokers"),
        Check(subject="group", place=servers, ask=lambda: brokers.group(group), after="brokers"),
        Check(subject="table", place=settings.table, ask=lambda: _tables(settings, options, patient=patient)),
        Check(subject="checkpoint", place=settings.checkpoint, ask=lambda: _checkpoint(settings)),
        *ops_checks(settings.ops),
        *port_checks(settings.metrics_port, "metrics_port"),
    ]
    if (name := options.workers_topic) is not None:
        ask = Check(
            subject="workers",
            place=servers,
            ask=lambda: brokers.workers_topic(name, "--workers-topic"),
            after="brokers",
        )
        found.append(ask)
    if options.value.name in {"avro", "protobuf"}:
        url = shown(str(options.value.registry["url"]))
        found.append(Check(subject="registry", place=url, ask=lambda: check_registry(options.value)))
    return found


def _topics(brokers: BrokerChecks, options: SourceOptions) -> str:
    setting = "--subscribe" if options.topics else "--subscribe-pattern"
    return brokers.topics(options.topics, options.pattern, setting)


def _tables(settings: AgentSettings, options: SourceOptions, *, patient: bool) -> str:
    raw = schema_without(arrow_schema(headers=options.headers), options.left_out)
    columns = pa.schema(list(KEYS.items())) if settings.decodes else raw
    sink = SinkOptions.parse(settings.sink_options())
    read = selects(options.topics, options.pattern)

    def goes_to(address: str, topic: str) -> bool:
        return read(topic) and sink.routes.table(topic) == with_name(address, PLACEHOLDER, topic)

    return "; ".join(
        check_table(
            one,
            options.group,
            settings.table_storage,
            columns,
            merge_schema=sink.table.merge_schema,
            selected=partial(goes_to, one),
            patient=patient,
        )
        for one in sink.routes.addresses()
    )


def _columns(options: SourceOptions) -> pa.Schema | None:
    """Return the columns of the rows; None if a registry, the table or a sample defines them.

    Raises:
        OptionError: the schema is invalid.
    """
    value = options.value
    if value.name == "raw":
        raw = arrow_schema(headers=options.headers, timestamp_type=options.timestamp_type)
        return schema_without(raw, options.left_out)
    if value.name != "json" or value.schema in {None, TABLE_SCHEMA}:
        return None
    decoder = make_value_decoder(value)
    assert decoder is not None  # noqa: S101 -- only the raw format has none
    return good_schema(landed_schema(decoder, headers=options.headers, left_out=options.left_out))


def _refuse_folder(settings: AgentSettings) -> None:
    """Refuse a checkpoint that is a file, or in the table's folder where VACUUM would remove its files.

    Raises:
        OptionError: it is.
    """
    refuse_mistaken(settings.checkpoint)
    folder = local_path(folder_of_spark(settings.checkpoint))
    if folder is None:
        return
    if folder.is_file():
        raise OptionError(f"checkpoint {settings.checkpoint}: is a file, need a folder")
    table = None if settings.iceberg or PLACEHOLDER in settings.table else local_path(settings.table)
    if table is None:
        return
    place, top = folder.resolve(), table.resolve()
    # Delta passes over names that begin with an underscore or a dot.
    if place == top or (top in place.parents and place.relative_to(top).parts[0][0] not in "_."):
        raise OptionError(
            f"checkpoint {settings.checkpoint}: is in the folder of the table {settings.table}, whose VACUUM removes "
            "files that are not the table's; name a folder outside of it"
        )


def _checkpoint(settings: AgentSettings) -> str:
    refuse_other_table(settings)
    refuse_damaged(settings)
    return check_writable(folder_of_spark(settings.checkpoint), settings.storage)


def _free_checkpoint(settings: AgentSettings) -> str:
    with only_agent_of_its_checkpoint(settings):  # a start has the lock already when it asks
        return _checkpoint(settings)


def _free_name(settings: AgentSettings) -> str:
    options = SourceOptions.parse(settings.source_options())
    with only_agent_of_its_name(settings):
        found = same_name(options)
    if found:
        raise OptionError(
            f"agent {settings.agent!r} of group {options.group!r} is running already, on "
            f"{', '.join(sorted(set(found.values())))}: give each agent a name of its own (--agent); an agent that was "
            f"killed leaves within {options.session_timeout_s:g} s"
        )
    return f"agent {settings.agent!r}: not in use"
