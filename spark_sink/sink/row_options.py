"""How fleets and claims make rows of records: the format of values, and the layout of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.formats import Decoder
from spark_sink.formats.bad_values_quarantined import good_schema
from spark_sink.lake.iceberg.partition_terms import check_terms, parse_terms
from spark_sink.lake.parquet_landing import Layout, check_partition_columns
from spark_sink.lake.table_addresses import is_iceberg
from spark_sink.lake.table_settings import TableSettings, Term
from spark_sink.options.option_spellings import Spelling, spelled
from spark_sink.options.value_decoders import make_value_decoder
from spark_sink.options.value_format import REGISTRY, TABLE_SCHEMA, TOPIC, ValueFormat, value_format
from spark_sink.sink.rows_by_table import landed_schema
from spark_sink.sink.sink_options import partition_columns

_DECODING = ("valueSchema", "valueSubject", "valueMessage", "unknownFields", "valueNull")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """How a writer without Spark makes rows of records; raw records by default.

    Attributes:
        value: the format of values; `{topic}` in its subject stands for the topic.
        headers: rows have the column `headers`.
        partition_by: partition columns of Delta tables.
        terms: partitioning of Iceberg tables.
        merge_schema: add columns that a table lacks.
        spelling: of the names of options in messages.
    """

    value: ValueFormat = field(default_factory=ValueFormat)
    headers: bool = False
    partition_by: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    merge_schema: bool = False
    spelling: Spelling = Spelling.QUERY

    @classmethod
    def parse(  # noqa: PLR0913 -- most callers leave out some
        cls,
        given: Mapping[str, str | None],
        registry: Mapping[str, str],
        *,
        table: str,
        topics: Sequence[str] = (),
        headers: bool = False,
        spelling: Spelling = Spelling.QUERY,
    ) -> "RowOptions":
        """Read options with the names of Spark's source and sink.

        Args:
            given: texts by name; None for options that are not set.
            registry: properties of the registry's client, without the prefix `schema.registry.`.
            table: address of the table, with the scheme of its format; `{topic}` in it makes a table, and a subject of
                the registry, of each topic.
            topics: the topics, if all of them are named.
            headers: rows have the column `headers`.
            spelling: how messages spell the names of options.

        Raises:
            OptionError: an option is invalid, missing or without effect.
            SchemaError: a partition column is not among the columns.
        """
        with spelled(spelling):
            return replace(cls._parse(given, registry, table, topics, headers=headers), spelling=spelling)

    @classmethod
    def _parse(
        cls,
        given: Mapping[str, str | None],
        registry: Mapping[str, str],
        table: str,
        topics: Sequence[str],
        *,
        headers: bool,
    ) -> "RowOptions":
        texts = {name.lower(): text for name, text in given.items() if text}
        kind = texts.get("valueformat", "raw").lower()
        _refuse_unsupported(kind, texts, given, registry)
        texts |= {f"{REGISTRY}{name}": text for name, text in registry.items()}
        if TOPIC in table and kind in {"avro", "protobuf"}:
            texts.setdefault("valuesubject", f"{TOPIC}-value")
        value = value_format(texts, tuple(topics), None)
        by, iceberg = texts.get("partitionby", ""), is_iceberg(table)
        found = cls(
            value=value,
            headers=headers,
            partition_by=() if iceberg else partition_columns(by),
            terms=parse_terms(by) if iceberg else (),
            merge_schema=texts.get("mergeschema", "false").lower() == "true",
        )
        if (columns := found.columns) is not None:
            check_partition_columns(columns, found.partition_by)
            check_terms(columns, found.terms)
        return found

    @property
    def decodes(self) -> bool:
        """Whether values are decoded into columns."""
        return self.value.name != "raw"

    @property
    def follows_registry(self) -> bool:
        """Whether fields that a newer schema of the registry adds become columns while records are written."""
        return self.merge_schema and self.value.name in {"avro", "protobuf"} and not self.value.schema

    @property
    def table(self) -> TableSettings:
        """Settings for creating and changing a table."""
        # A table of raw records gets the column `headers` without a further option.
        merge = self.merge_schema or (self.headers and not self.decodes)
        layout = Layout(partition_columns=self.partition_by)
        return TableSettings(layout=layout, merge_schema=merge, terms=self.terms)

    @property
    def columns(self) -> pa.Schema | None:
        """The columns of a table; None if a registry defines them."""
        if self.value.name in {"avro", "protobuf"}:
            return None
        return good_schema(self.schema(make_value_decoder(self.value)))

    def schema(self, decoder: Decoder | None) -> pa.Schema:
        """Return the columns of rows, with `_quarantine` if they are decoded.

        Raises:
            OptionError: a decoded column has a name that is in use.
        """
        if decoder is None:
            return arrow_schema(headers=self.headers)
        return landed_schema(decoder, headers=self.headers)

    def value_of(self, topic: str) -> ValueFormat:
        """Return the format with the subject of a topic."""
        subject = self.value.subject
        return self.value if subject is None else replace(self.value, subject=subject.replace(TOPIC, topic))


def _refuse_unsupported(
    kind: str, texts: Mapping[str, str], given: Mapping[str, str | None], registry: Mapping[str, str]
) -> None:
    """Refuse options without effect, and those that need the columns of the table or a sample of records."""
    if kind == "raw":
        stray = next((name for name in _DECODING if given.get(name)), "schema.registry" if registry else None)
        if stray is not None:
            raise OptionError(f"option {stray!r} has no effect without valueFormat=json, avro or protobuf")
    if kind == "json" and texts.get("valueschema", TABLE_SCHEMA).strip().lower() == TABLE_SCHEMA:
        raise OptionError(
            "valueFormat=json needs the option 'valueSchema' with the columns, as {\"name\": \"type\"}, or 'variant': "
            "columns that are inferred or read from the table are for `azimuth sink`"
        )
    if texts.get("unknownfields", "").lower() == "evolve":
        raise OptionError(
            "option 'unknownFields': 'evolve' is for `azimuth sink`, whose columns are those of the table; "
            "'rescue' keeps unknown fields in the column '_rescued'"
        )
