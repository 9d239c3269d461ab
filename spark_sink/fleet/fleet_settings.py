"""The settings of a fleet: one TOML file for all its agents, and environment variables for each agent."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from assignors.errors import BoundError, FleetError, WorkersError
from assignors.fleet import (
    PRESENT_DIVISION,
    Balance,
    BalanceBy,
    FleetWorkers,
    Lanes,
    Session,
    Source,
    declared_settings,
)
from assignors.fleet import Agent as FleetAgentId
from assignors.settings import Real, Whole, message, place, plain, warn_of_mistyped
from spark_sink.errors import OptionError
from spark_sink.fleet.kept_agent_name import kept_name
from spark_sink.fleet.setting_conflicts import on_one_cluster, refuse_conflicts
from spark_sink.fleet.settings_tables import (
    AnyMembership,
    KafkaMembership,
    Name,
    RedisMembership,
    SourceSettings,
    StaticMembership,
    WorkersSettings,
)
from spark_sink.kafka.client_property_names import librdkafka_config
from spark_sink.lake.storage_names import check_catalog_names, check_storage_names
from spark_sink.lake.table_addresses import CLUSTER, table_address, table_storage, with_name
from spark_sink.options.option_spellings import Spelling

if TYPE_CHECKING:  # these load formats and tables, which an agent without options needs only after its join
    from spark_sink.lake.ops_log.ops_settings import OpsSettings
    from spark_sink.sink.row_options import RowOptions

_HOUR_S = 3600.0
_MOST_QUEUE_KB = 2_097_151  # librdkafka's limit


class FleetSettings(BaseSettings):
    """Settings of an agent; environment variables are called `AZIMUTH_FLEET_<NAME>`, nested ones with `__`."""

    model_config = SettingsConfigDict(
        env_prefix="AZIMUTH_FLEET_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    agent: Name = Field(
        "",
        validate_default=False,
        description="This agent's permanent name, unique in the fleet; or status_file keeps one.",
    )
    capacity: Real = Field(1.0, description="How much it reads relative to the others.")
    zone: str | None = Field(None, description="Where it runs, as the brokers' racks name it.")
    name: Name = Field(description="The fleet's name; names of its groups and of positions in tables contain it.")
    table: str = Field(min_length=1, description="Table; {cluster} stands for the source, {topic} for the topic.")
    table_format: Literal["delta", "iceberg"] = Field("delta", description="Format of the tables.")
    catalog: Annotated[dict[str, str], AfterValidator(check_catalog_names)] = Field(
        default_factory=dict, description="Options of the Iceberg catalog, as pyiceberg has them."
    )
    sources: dict[Name, SourceSettings] = Field(min_length=1, description="Clusters, by name.")
    membership: AnyMembership = KafkaMembership(home=None)
    workers: WorkersSettings = WorkersSettings(default=1, file=None, topic=None, redis=None)
    storage: Annotated[dict[str, str], AfterValidator(check_storage_names)] = Field(
        default_factory=dict, description="Options of the object store."
    )
    session_s: Real = Field(10.0, description="After this long without a sign of life an agent is removed.")
    lanes: Whole = Field(4, description="Consumers of an agent for each cluster, at most; the same in the whole fleet.")
    epsilon: Real = Field(0.05, description="Allowed excess over the fair share of topics.")
    balance: BalanceBy = Field(
        "count", description="What epsilon bounds: the number of topics, or their volume by workers.weights and topic."
    )
    prefer_zones: bool = Field(
        default=False, description="Place topics on agents in the zones of their replicas, as far as epsilon allows."
    )
    assignment: Literal["seat", "group"] = Field(
        "seat", description="What gives partitions to a topic's agents: even shares by seat, or the consumer group."
    )
    seed: Whole = Field(0, description="Another seed, another ranking; the same in the whole fleet.")
    flush_s: Real = Field(1.0, gt=0, le=_HOUR_S, description="Seconds between two writes of records into a table.")
    discover_s: Real = Field(10.0, gt=0, le=_HOUR_S, description="Seconds between two requests for a cluster's topics.")
    memory_bytes: Whole = Field(
        256 << 20, ge=16 << 20, description="Memory of an agent for records that are not in a table yet."
    )
    include_headers: bool = Field(default=False, description="Land the records' headers, too, in the column `headers`.")
    value_format: str = Field("raw", description="raw, json, avro or protobuf: whether values become columns.")
    value_schema: str | None = Field(None, description="Columns of JSON values, or an Avro schema.")
    value_subject: str | None = Field(
        None, description="Subject of the registry; {topic} in it stands for the topic, {topic}-value by default."
    )
    value_message: str | None = Field(None, description="Full name of the Protobuf message.")
    unknown_fields: str | None = Field(None, description="Of fields without a column: rescue, quarantine or ignore.")
    value_null: str | None = Field(None, description="Of records without a value: quarantine or keep.")
    schema_registry: dict[str, str] = Field(
        default_factory=dict, description="Properties of the registry's client, at least url."
    )
    partition_by: str | None = Field(None, description="Partition columns of new tables, by commas.")
    merge_schema: bool = Field(default=False, description="Add columns that a table lacks.")
    price_per_gb: Real = Field(0.01, ge=0, description="Money per GB (10^9 bytes) that comes from another zone.")
    ops_log: str | None = Field(None, description="Delta table of batches, rows, bytes and errors, by topic and agent.")
    ops_log_s: Real = Field(60.0, ge=1, le=_HOUR_S, description="Seconds between two writes of the ops log.")
    ops_log_days: Whole = Field(90, ge=1, description="Days that the ops log keeps.")
    status_file: Path | None = Field(None, description="File for the agent's status as JSON, rewritten twice a second.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment override the file, because all agents use the same file."""
        return env_settings, init_settings

    @classmethod
    def load(cls, config: Path, **given: Any) -> "FleetSettings":  # noqa: ANN401 - what the fields take
        """Read the settings.

        Args:
            config: TOML file; its keys are the names here.
            given: values for settings that neither the file nor the environment has.

        An agent without a name gets one that is kept beside its status file.

        Raises:
            OptionError: the file cannot be read, or a setting is unknown, missing or invalid.
        """
        warn_of_mistyped("AZIMUTH_FLEET_", cls.model_fields)
        try:
            found = cls(**{**given, **_with_full_path(config, tomllib.loads(config.read_text()))})
        except OSError as error:
            raise OptionError(f"{config}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise OptionError(f"{config}: is not TOML: {error}") from error
        except ValidationError as error:
            raise OptionError(f"{config}: " + "; ".join(_sentence(one) for one in error.errors())) from error
        except SettingsError as error:  # pydantic's message names the field
            raise OptionError(f"environment: {error}: need JSON in AZIMUTH_FLEET_<FIELD>") from error
        if not found.agent:
            found = found.model_copy(update={"agent": found.own_name(config)})
        try:
            refuse_conflicts(found, config)
        except (BoundError, FleetError, WorkersError) as error:
            raise type(error)(f"{config}: {error}") from error
        return found

    def own_name(self, config: Path) -> str:
        """Return the name that is kept beside the status file.

        Raises:
            OptionError: there is no status file, the fleet is static, or the name cannot be kept.
        """
        if self.status_file is None or isinstance(self.membership, StaticMembership):
            more = "" if isinstance(self.membership, StaticMembership) else ", or a status_file that keeps a name"
            raise OptionError(
                f"{config}: agent is missing, and all agents share this file: set --agent or AZIMUTH_FLEET_AGENT{more}"
            )
        return kept_name(self.status_file)

    @property
    def agent_id(self) -> FleetAgentId:
        """The identity of this agent, with the settings that it declares to the others."""
        given = self.workers
        shared = {
            "lanes": self.lanes,
            "assignment": int(self.assignment == "seat"),
            "division": PRESENT_DIVISION,
            "epsilon": self.epsilon,
            "seed": self.seed,
            "prefer_zones": int(self.prefer_zones),
            # None is left out, so that with the defaults agents of earlier versions declare the same.
            "balance": None if self.balance == "count" else self.balance,
            "workers.weights": sorted(given.weights.items()),
            "table": self.table,
            "table_format": None if self.table_format == "delta" else self.table_format,
            "workers.default": given.default,
            "workers.patterns": list(given.patterns.items()),  # in order, because the first match counts
            "workers.overrides": sorted(given.overrides.items()),
            "workers.topic": given.topic,
            **self._row_texts(),
            **{f"sources.{name}": [sorted(one.topics), one.pattern] for name, one in self.sources.items()},
        }
        return FleetAgentId(self.agent, self.capacity, self.zone, declared_settings(shared))

    def address(self, source: str) -> str:
        """Return the address of a source's tables, with the scheme of their format; `{topic}` may be in it.

        Raises:
            OptionError: it is not an address of this format, or options of a catalog are given for Delta tables.
        """
        return with_name(table_address(self.table, self.table_format, self.catalog, self.storage), CLUSTER, source)

    @property
    def table_storage(self) -> dict[str, str]:
        """Options of the object store and of the catalog."""
        return table_storage(self.storage, self.catalog)

    @property
    def has_row_options(self) -> bool:
        """Whether values are decoded, or rows differ from those of raw records in another way."""
        return bool(self.schema_registry) or any(self._row_texts().values())

    def rows(self, source: str) -> "RowOptions":
        """Return how records of a source become rows.

        Raises:
            OptionError: an option is invalid, missing or without effect.
            SchemaError: a partition column is not among the columns.
        """
        from spark_sink.sink.row_options import RowOptions  # noqa: PLC0415 -- as above

        given = self.sources[source]
        return RowOptions.parse(
            self._row_texts(),
            self.schema_registry,
            table=self.address(source),
            topics=() if given.pattern else given.topics,
            headers=self.include_headers,
            spelling=Spelling.FILE,
        )

    def _row_texts(self) -> dict[str, str | None]:
        """Return the options that differ from those of raw records, with their names in a query."""
        return {
            "valueFormat": self.value_format if self.value_format != "raw" else None,
            "valueSchema": self.value_schema,
            "valueSubject": self.value_subject,
            "valueMessage": self.value_message,
            "unknownFields": self.unknown_fields,
            "valueNull": self.value_null,
            "partitionBy": self.partition_by,
            "mergeSchema": "true" if self.merge_schema else None,
        }

    @property
    def news(self) -> str | None:
        """Address of the Redis that announces changes of the workers topic; None if there is none."""
        if self.workers.topic is None:
            return None
        member = self.membership
        return self.workers.redis or (member.url if isinstance(member, RedisMembership) else None)

    @property
    def ops(self) -> "OpsSettings | None":
        """The settings of the ops log; None without one.

        Raises:
            OptionError: its address is invalid.
        """
        if self.ops_log is None:
            return None
        from spark_sink.lake.ops_log.ops_settings import OpsSettings  # noqa: PLC0415 -- as above

        return OpsSettings(
            table=self.ops_log, every_s=self.ops_log_s, keep_days=self.ops_log_days, storage=self.storage
        )

    @property
    def session(self) -> Session:
        """The times of the membership."""
        return Session(session_s=self.session_s)

    @property
    def placement(self) -> Balance:
        """The settings of the balance of topics on agents."""
        return Balance(epsilon=self.epsilon, seed=self.seed, by=self.balance)

    @property
    def lane_count(self) -> Lanes:
        """The grouping of topics into lanes."""
        siblings = {
            name: sum(on_one_cluster(one, other) for other in self.sources.values())
            for name, one in self.sources.items()
        }
        # Agents of a static fleet cannot send their numbers to each other, and different numbers mean different seats.
        silent = isinstance(self.membership, StaticMembership) and bool(self.workers.file or self.workers.topic)
        seated = self.assignment == "seat" and not silent
        return Lanes(count=self.lanes, seated=seated, siblings=siblings, silent=silent)

    @property
    def fleet_workers(self) -> FleetWorkers:
        """The configured workers, before the autoscaler and the file."""
        given = self.workers
        return FleetWorkers(
            default=given.default, patterns=given.patterns, overrides=given.overrides, weights=given.weights
        )

    @property
    def home(self) -> str:
        """The source of the home cluster."""
        named = self.membership.home if isinstance(self.membership, KafkaMembership) else None
        return named or next(iter(self.sources))

    def kafka(self, source: str) -> dict[str, Any]:
        """Return librdkafka's properties for a source's clients other than consumers."""
        return {"client.id": f"azimuth.{self.agent}.{source}", **self._given(source)}

    def _given(self, source: str) -> dict[str, Any]:
        given = self.sources[source]
        return {"bootstrap.servers": given.bootstrap_servers, **librdkafka_config(given.kafka)}

    def reading(self, source: str) -> dict[str, Any]:
        """Return librdkafka's properties of a source's consumers.

        Half of the memory is for their queues. They fetch from a replica in the agent's zone (KIP-392).
        """
        queue_kb = self.memory_bytes // 2 // (self.lanes * len(self.sources)) >> 10
        queue_kb = min(max(queue_kb, 1), _MOST_QUEUE_KB)
        rack = {} if self.zone is None else {"client.rack": self.zone}
        return {"queued.max.messages.kbytes": queue_kb, **rack, **self._given(source)}

    @property
    def buffer_bytes(self) -> int:
        """Memory of a source for records that have been read, and the same for records that are being written."""
        return self.memory_bytes // 4 // len(self.sources)

    def source(self, name: str) -> Source:
        """Return a source, checked."""
        given = self.sources[name]
        return Source(name=name, kafka=self.kafka(name), topics=given.topics, pattern=given.pattern)


def _with_full_path(config: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Resolve the path of overrides relative to the file that names it, not to the working directory."""
    workers = given.get("workers")
    if not isinstance(workers, dict) or not isinstance(workers.get("file"), str):
        return given
    return {**given, "workers": {**workers, "file": str(config.parent.absolute() / workers["file"])}}


def _sentence(error: Any) -> str:  # noqa: ANN401 -- pydantic's own dictionary
    if error["type"] == "union_tag_invalid":
        return f"{place(error)}: kind {error['ctx']['tag']!r}, need 'kafka', 'redis' or 'static'"
    if (text := plain(error, FleetSettings)) is not None:
        return f"{place(error)}: {text}"
    return f"{place(error) or 'settings'}: {message(error)}"
