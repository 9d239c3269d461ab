"""The settings of the evaluator: one TOML file for all pipelines; environment variables override it."""

import re
import tomllib
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from assignors.clients.masked_addresses import shown
from assignors.clients.redis_addresses import REDIS_ADDRESSES, REDIS_SCHEMES
from assignors.errors import NO_PATTERN, ScalingFileError
from assignors.scaling.agents_of_group import AgentsSettings
from assignors.scaling.alerts import alert_hooks
from assignors.scaling.pipelines import Pipeline, TopicName, sentence
from assignors.scaling.workers_records import DEFAULT_TOPIC
from assignors.settings.mistyped_names import warn_of_mistyped
from assignors.settings.strict_numbers import Real, Whole

_REDIS = tuple(f"{scheme}://" for scheme in REDIS_SCHEMES)


class ScalingSettings(BaseSettings):
    """Settings of the evaluator; environment variables have the names `AZIMUTH_SCALING_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="AZIMUTH_SCALING_", extra="forbid", frozen=True, allow_inf_nan=False)

    bootstrap_servers: str = Field(min_length=1, description="Kafka brokers, host:port by commas.")
    interval_s: Real = Field(default=30.0, gt=0, le=86_400, description="Time between two decisions, seconds.")
    store: str = Field(default="memory", description="Where observations wait: 'memory', or redis://host:port/db.")
    journal: Path = Field(default=Path("scaling.jsonl"), description="File that takes every decision.")
    journal_bytes: Whole = Field(
        default=64 << 20, ge=1 << 16, description="Longest journal; the one before it is kept as <name>.1."
    )
    workers_bootstrap_servers: str | None = Field(
        default=None,
        min_length=1,
        description="Brokers of the cluster with the workers topic, where it is another one.",
    )
    workers_kafka: dict[str, str] = Field(
        default_factory=dict, description="Librdkafka's properties of that cluster, where it is another one."
    )
    workers_topic: TopicName = Field(default=DEFAULT_TOPIC, description="Compacted topic that takes the numbers.")
    workers_redis: str | None = Field(
        default=None,
        description="Redis that notifies followers of a change; by default the store's, if the store is Redis.",
    )
    alerts: tuple[str, ...] = Field(
        default=("log",), description="'log', http addresses, redis://host/db?channel=name."
    )
    kafka: dict[str, str] = Field(default_factory=dict, description="More properties of librdkafka.")
    pipelines: dict[str, Pipeline] = Field(description="Pipelines by name.")
    agents: dict[str, AgentsSettings] = Field(
        default_factory=dict, description="By group: what one agent can do, for the number of agents."
    )

    @model_validator(mode="after")
    def _addresses_are_of_redis(self) -> Self:
        if self.store != "memory" and not self.store.startswith(_REDIS):
            raise ValueError(f"store {shown(self.store)!r}: need 'memory', or {REDIS_ADDRESSES}")
        if self.workers_redis is not None and not self.workers_redis.startswith(_REDIS):
            raise ValueError(f"workers_redis {shown(self.workers_redis)!r}: need {REDIS_ADDRESSES}")
        return self

    @model_validator(mode="after")
    def _pipelines_make_sense(self) -> Self:
        if not self.pipelines:
            raise ValueError("pipelines: name one at least")
        if self.workers_kafka and self.workers_bootstrap_servers is None:
            raise ValueError("workers_kafka: only with workers_bootstrap_servers, the cluster that it is for")
        if unknown := self.agents.keys() - set(self.groups):
            raise ValueError(f"agents.{min(unknown)}: no pipeline has this group; groups are {sorted(self.groups)}")
        for name, pipeline in self.pipelines.items():
            if not pipeline.group:
                raise ValueError(f"pipelines.{name}: group is missing")
            if not pipeline.topics and not pipeline.pattern:
                raise ValueError(f"pipelines.{name}: give topics or a pattern")
            if pipeline.window_s < 2 * self.interval_s:
                raise ValueError(
                    f"pipelines.{name}: window_s={pipeline.window_s:g} is less than two rounds of "
                    f"interval_s={self.interval_s:g}: no rate could be read from it"
                )
            try:
                re.compile(pipeline.pattern or "")
            except NO_PATTERN as error:
                raise ValueError(f"pipelines.{name}: pattern {pipeline.pattern!r}: {error}") from error
        return self

    @classmethod
    def load(cls, config: Path) -> "ScalingSettings":
        """Read the file.

        Raises:
            ScalingFileError: the file cannot be read, or a setting is unknown, missing or invalid.
        """
        warn_of_mistyped("AZIMUTH_SCALING_", cls.model_fields)
        try:
            given: dict[str, Any] = tomllib.loads(config.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ScalingFileError(f"{config}: cannot be read: {why}") from error
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ScalingFileError(f"{config}: is not TOML: {error}") from error
        try:
            settings = cls(**given)
        except ValidationError as error:
            raise ScalingFileError(f"{config}: {'; '.join(sentence(one, cls) for one in error.errors())}") from error
        alert_hooks(settings.alerts)
        return settings

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of all pipelines, each once, in the file's order."""
        return tuple(dict.fromkeys(pipeline.group for pipeline in self.pipelines.values()))

    @property
    def news(self) -> str | None:
        """Return the address of the Redis that tells followers of a change; None if there is none."""
        return self.workers_redis or (self.store if self.store.startswith(_REDIS) else None)

    @property
    def client(self) -> dict[str, str]:
        """Return the properties of a client of the observed cluster."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.kafka}

    @property
    def workers_client(self) -> dict[str, str]:
        """Return the properties of a client of the cluster with the workers topic."""
        if self.workers_bootstrap_servers is None:
            return self.client
        return {"bootstrap.servers": self.workers_bootstrap_servers, **self.workers_kafka}
