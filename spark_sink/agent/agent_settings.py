"""The settings of an agent: a TOML file, environment variables, flags; later ones override earlier ones."""

import json
import os
import re
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from assignors.settings import Real, Whole, message, place, plain, proposal, warn_of_mistyped
from spark_sink.agent.spark_master import check_configured_master, check_master
from spark_sink.errors import OptionError
from spark_sink.kafka.broker_addresses import check_servers
from spark_sink.kafka.client_property_names import broker_assigned_config, librdkafka_config
from spark_sink.lake.storage_names import check_catalog_names, check_storage_names
from spark_sink.options.value_format import TABLE_SCHEMA

if TYPE_CHECKING:
    from spark_sink.lake.ops_log.ops_settings import OpsSettings

AVAILABLE_NOW = "available-now"
_ROW_COLUMNS = {
    "includeheaders",
    "includekey",
    "includetimestamptype",
    "includevalue",
}  # options of the source that change the rows of the raw format
_SPAN = r"\+?\d+(\.\d+)?\s*(microsecond|millisecond|second|minute|hour|day|week)s?"
_INTERVAL = re.compile(rf"(interval\s+)?{_SPAN}(\s+{_SPAN})*", re.IGNORECASE)


def _json(value: object) -> object:
    """Convert a number or a table of the file to text."""
    return json.dumps(value) if type(value) in {int, dict} else value


def _interval(text: str) -> str:
    """Check the time between two batches; Spark would refuse it only after its start."""
    if text != AVAILABLE_NOW and not _INTERVAL.fullmatch(text.strip()):
        raise ValueError(f"{text!r}, need a time as '10 seconds', or {AVAILABLE_NOW!r}")
    return text


def _size(text: str) -> str:
    """Check the size of a heap; Java would refuse it with several lines of its own."""
    if not re.fullmatch(r"[1-9]\d*[kmgt]b?", text, re.IGNORECASE):
        raise ValueError(f"{text!r}, need a size as '768m' or '2g'")
    return text


class AgentSettings(BaseSettings):
    """Settings of one ingestion agent; environment variables have the names `AZIMUTH_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="AZIMUTH_", extra="forbid", frozen=True)

    bootstrap_servers: Annotated[str, AfterValidator(check_servers)] = Field(
        description="Kafka brokers, host:port by commas."
    )
    group: str = Field(min_length=1, description="Consumer group; agents of one group share the partitions.")
    table: str = Field(
        min_length=1,
        description="Delta table, {topic} in it makes a table of each topic; or catalog.namespace.table of Iceberg.",
    )
    table_format: Literal["delta", "iceberg"] = Field("delta", description="Format of the table.")
    catalog: Annotated[dict[str, str], AfterValidator(check_catalog_names)] = Field(
        default_factory=dict, description="Options of the Iceberg catalog, as pyiceberg has them."
    )
    checkpoint: str = Field(min_length=1, description="Folder for Spark's checkpoint, this agent's own.")
    subscribe: str | None = Field(None, description="Topics, by commas.")
    subscribe_pattern: str | None = Field(None, description="Regular expression of topics.")
    agent: str = Field(default_factory=socket.gethostname, min_length=1, description="The agent's permanent name.")
    rack: str | None = Field(None, description="The agent's zone.")
    assignor: Literal["hrw", "shuffled"] = Field("hrw", description="How the group shares partitions.")
    workers: Annotated[str, BeforeValidator(_json)] | None = Field(
        None, description="Agents per topic: a number, or {topic or pattern: number}."
    )
    workers_topic: str | None = Field(
        None, description="Topic on which 'azimuth autoscale' publishes agents per topic."
    )
    starting_offsets: str = Field("earliest", description="Where a partition without a known position begins.")
    max_offsets_per_trigger: Whole | None = Field(
        None, ge=1, description="Maximum number of offsets that a batch reads."
    )
    trigger: Annotated[str, AfterValidator(_interval)] = Field(
        "500 milliseconds", description="Time between batches, or 'available-now' to end when caught up."
    )
    master: Annotated[str, AfterValidator(check_master)] = Field("local[*]", description="Spark's master.")
    driver_memory: Annotated[str, AfterValidator(_size)] = Field("768m", description="Heap of Spark's driver.")
    landing: Literal["direct", "rows"] = Field(
        "direct", description="The writer of data files: direct, the reading tasks, or rows, the sink."
    )
    ops_log: str | None = Field(None, description="Delta table of batches, rows, bytes and errors, by topic and agent.")
    ops_log_s: Real = Field(60.0, ge=1, le=3600, description="Seconds between two writes of the ops log.")
    ops_log_days: Whole = Field(90, ge=1, description="Days that the ops log keeps.")
    metrics_port: Whole | None = Field(None, ge=0, le=65535, description="Port of the Prometheus endpoint.")
    kafka: dict[str, str] = Field(default_factory=dict, description="Kafka client properties.")
    source: dict[str, str] = Field(default_factory=dict, description="More options of kafka-group.")
    sink: dict[str, str] = Field(default_factory=dict, description="More options of the table's sink.")
    storage: Annotated[dict[str, str], AfterValidator(check_storage_names)] = Field(
        default_factory=dict, description="Options of the object store."
    )
    spark: Annotated[dict[str, str], AfterValidator(check_configured_master)] = Field(
        default_factory=dict, description="Spark configuration."
    )

    @model_validator(mode="after")
    def _one_subscription(self) -> Self:
        if bool(self.subscribe) == bool(self.subscribe_pattern):
            raise ValueError("give one of subscribe (topics) and subscribe_pattern (a regular expression)")
        return self

    @classmethod
    def load(cls, config: Path | None, flags: Mapping[str, Any]) -> "AgentSettings":
        """Read the settings.

        Args:
            config: TOML file; its keys are the names here.
            flags: flags of the command line; None and empty values mean that a flag was not given.

        Raises:
            OptionError: the file cannot be read, or a setting is unknown, missing or invalid.
        """
        warn_of_mistyped("AZIMUTH_", cls.model_fields)
        given = {name: value for name, value in flags.items() if value is not None and value != {}}
        file = _read(config) if config else {}
        strangers = sorted(file.keys() - cls.model_fields.keys())
        if strangers:
            known = proposal(strangers[0], cls.model_fields) or f"known are {', '.join(cls.model_fields)}"
            raise OptionError(f"{config}: unknown setting {strangers[0]!r}; {known}")
        environment = {name: value for name in cls.model_fields if (value := _from_environment(cls, name)) is not None}
        try:
            return cls(**{**file, **environment, **given})
        except ValidationError as error:
            raise OptionError("; ".join(_sentences(error.errors()))) from error

    @model_validator(mode="after")
    def _one_format(self) -> Self:
        if self.catalog and not self.iceberg:
            raise ValueError("catalog is for Iceberg tables; set table_format=iceberg, or leave it out")
        if self.table.startswith("iceberg://") and not self.iceberg:
            raise ValueError(f"table {self.table!r} is an Iceberg table; set table_format=iceberg")
        if self.iceberg:
            from spark_sink.lake.iceberg.catalogs import iceberg_address  # noqa: PLC0415 -- for few agents

            iceberg_address(self.table)
        return self

    @property
    def iceberg(self) -> bool:
        """Whether the table is Iceberg's."""
        return self.table_format == "iceberg"

    @property
    def address(self) -> str:
        """The address of the table, with the scheme of its format."""
        from spark_sink.lake.table_addresses import ICEBERG, table_uri  # noqa: PLC0415 -- loads deltalake

        return f"{ICEBERG}{self.table.removeprefix(ICEBERG)}" if self.iceberg else table_uri(self.table)

    @property
    def tables(self) -> str:
        """The addresses of all tables, also those of routes, in the format of the option `positions`."""
        routes = next((value for name, value in self.sink.items() if name.lower() == "routes"), None)
        if not routes:
            return self.address if self.iceberg else self.table
        from spark_sink.sink.sink_options import SinkOptions  # noqa: PLC0415 -- loads deltalake, for few agents

        return json.dumps(SinkOptions.parse(self.sink_options()).routes.addresses())

    @property
    def table_storage(self) -> dict[str, str]:
        """Options of the object store and of the catalog, as a table takes them."""
        from spark_sink.lake.table_addresses import table_storage  # noqa: PLC0415 -- loads deltalake

        return table_storage(self.storage, self.catalog)

    @property
    def ops(self) -> "OpsSettings | None":
        """The settings of the ops log; None without one.

        Raises:
            OptionError: its address is invalid, or near that of a table.
        """
        if self.ops_log is None:
            return None
        from spark_sink.lake.ops_log.ops_settings import OpsSettings  # noqa: PLC0415 -- loads deltalake
        from spark_sink.sink.sink_options import SinkOptions  # noqa: PLC0415 -- loads deltalake

        found = OpsSettings(
            table=self.ops_log, every_s=self.ops_log_s, keep_days=self.ops_log_days, storage=self.storage
        )
        if not self.iceberg:
            found.refuse_near(SinkOptions.parse(self.sink_options()).routes.addresses())
        return found

    @property
    def decodes(self) -> bool:
        """Whether values are decoded into columns, which must be known before the first file is written."""
        return (self._source_option("valueFormat") or "raw").lower() != "raw"

    def source_options(self, columns: str | None = None, *, land: bool = False) -> dict[str, str]:
        """Options of `.format("kafka-group")`.

        Args:
            columns: the schema of the rows, in Spark's JSON; None for the raw format.
            land: the reading tasks write the data files.
        """
        wanted = {
            "subscribe": self.subscribe,
            "subscribePattern": self.subscribe_pattern,
            "agent": self.agent,
            "rack": self.rack,
            "assignor": None if self._assigned_by_broker() else self.assignor,
            "workers": self.workers,
            "workersTopic": self.workers_topic,
            "startingOffsets": self.starting_offsets,
            "maxOffsetsPerTrigger": self.max_offsets_per_trigger,
            "positions": self.tables,
            "sinkLanding": self.landing,
        }
        if (self._source_option("valueFormat") or "").lower() == "json" and not self._source_option("valueSchema"):
            # The agents of a group write one table, and samples at different times may differ.
            wanted["valueSchema"] = TABLE_SCHEMA
        given = {name: str(value) for name, value in wanted.items() if value}
        if land:
            given["landing"] = json.dumps(self.sink_options(columns))
        return {**self._shared(), **given, **self.source}

    def sink_options(self, columns: str | None = None) -> dict[str, str]:
        """Options of `.format("delta-exactly-once")`, or of `.format("iceberg-exactly-once")`."""
        own = {
            "path": self.table,
            "tableFormat": self.table_format,
            "checkpointLocation": self.checkpoint,
            "agent": self.agent,
        }
        # The sink must know the columns if it sees no rows.
        own |= {name: value for name, value in self.source.items() if name.lower() in _ROW_COLUMNS}
        own |= {"columns": columns} if columns else {}
        own |= {"topicNotes": "true"} if self.ops_log is not None else {}
        return {**self._shared(), **own, **self.sink}

    def admin_options(self) -> dict[str, str]:
        """Return properties of a Kafka client that reads offsets."""
        own = {"bootstrap.servers": self.bootstrap_servers, "client.id": f"azimuth.{self.agent}"}
        return {**own, **librdkafka_config(self.kafka)}

    def _source_option(self, name: str) -> str | None:
        return next((value for one, value in self.source.items() if one.lower() == name.lower()), None)

    def _assigned_by_broker(self) -> bool:
        # An assignor that the user named is passed on, so that the source refuses the contradiction.
        return broker_assigned_config(self.kafka) is not None and "assignor" not in self.model_fields_set

    def _shared(self) -> dict[str, str]:
        kafka = {"bootstrap.servers": self.bootstrap_servers, "group.id": self.group, **self.kafka}
        return {
            **{f"kafka.{name}": value for name, value in kafka.items()},
            **{f"storage.{name}": value for name, value in self.storage.items()},
            **{f"catalog.{name}": value for name, value in self.catalog.items()},
        }


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text())
    except OSError as error:
        raise OptionError(f"{config}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{config}: is not TOML: {error}") from error


def _from_environment(settings: type[AgentSettings], name: str) -> Any:  # noqa: ANN401 -- text, or a value from its JSON
    text = os.environ.get(f"AZIMUTH_{name.upper()}")
    if text is None or settings.model_fields[name].annotation != dict[str, str]:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # the message leaves out the text, which may contain a password
        raise OptionError(f"AZIMUTH_{name.upper()} is not a JSON object of texts: {error}") from error


def _sentences(errors: list[Any]) -> list[str]:
    missing = [str(one["loc"][0]) for one in errors if one["type"] == "missing"]
    said = [_sentence(one) for one in errors if one["type"] != "missing"]
    if missing:
        flag, variable = missing[0].replace("_", "-"), missing[0].upper()
        said.insert(
            0, f"{', '.join(missing)}: needed, as a flag (--{flag}), a variable (AZIMUTH_{variable}) or in a file"
        )
    return said


def _sentence(error: Any) -> str:  # noqa: ANN401 -- pydantic's own dictionary
    return f"{place(error) or 'settings'}: {plain(error, AgentSettings) or message(error)}"
