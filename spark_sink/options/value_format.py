"""Options of a source about record values: their format, their schema, and fields that the schema lacks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_sink.errors import OptionError
from spark_sink.formats.unknown_policy import NULL_POLICIES, POLICIES, NullPolicy, Policy
from spark_sink.options.option_texts import addresses, choice, number

REGISTRY = "schema.registry."
FORMATS = ("raw", "json", "avro", "protobuf")
TABLE_SCHEMA = "table"  # in place of a schema of JSON: the columns that the sink's table has
TOPIC = "{topic}"  # in an address: a table for each topic; in a subject of fleets and claims: a subject for each


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFormat:
    """The format of a value.

    Attributes:
        name: "raw", "json", "avro" or "protobuf".
        schema: from an option; None for that of the subject (Avro, Protobuf) or of a sample (JSON); TABLE_SCHEMA for
            the columns of the sink's table, and a sample until it exists (JSON).
        subject: subject of the registry whose latest schema gives the columns.
        message: full name of a Protobuf message; None for the first of the schema.
        registry: properties of the registry's client.
        sample: number of records from which a JSON schema is inferred.
        unknown: handling of fields that the schema does not know: "rescue", "evolve", "quarantine" or "ignore".
        nulls: handling of records without a value: "quarantine" or "keep".
    """

    name: str = "raw"
    schema: str | None = None
    subject: str | None = None
    message: str | None = None
    registry: Mapping[str, str] = field(default_factory=dict)
    sample: int = 1_000
    unknown: Policy = "rescue"
    nulls: NullPolicy = "quarantine"


def value_format(given: Mapping[str, str], topics: tuple[str, ...], landing: Mapping[str, str] | None) -> ValueFormat:
    """Read the options of a source that say what is in a value.

    Args:
        given: options by name in lower case.
        topics: subscribed to by name.
        landing: options of the sink, where the tasks write the data files.

    Raises:
        OptionError: an option is missing, contradictory or has no meaning.
    """
    name = choice(given, "valueFormat", FORMATS)
    if name != "raw" and landing is not None and "columns" not in landing:
        raise OptionError(f"valueFormat={name} is landed by the tasks only where 'landing' holds the option 'columns'")
    schema = _schema(given, name)
    if schema == TABLE_SCHEMA and landing is None:
        _refuse_changed_rows(given)
    registry = {key[len(REGISTRY) :]: value for key, value in given.items() if key.startswith(REGISTRY)}
    subject = given.get("valuesubject") or (f"{topics[0]}-value" if len(topics) == 1 else None)
    if name in {"avro", "protobuf"}:
        if not registry.get("url"):
            raise OptionError(f"valueFormat={name} needs the option 'schema.registry.url'")
        if not subject:
            raise OptionError(f"valueFormat={name} on several topics needs the option 'valueSubject'")
    return ValueFormat(
        name=name,
        schema=schema,
        subject=subject,
        message=given.get("valuemessage") or None,
        registry=registry,
        sample=number(given, "inferRecords", 1_000) or 1_000,
        unknown=choice(given, "unknownFields", POLICIES),
        nulls=choice(given, "valueNull", NULL_POLICIES),
    )


def _schema(given: Mapping[str, str], name: str) -> str | None:
    schema = given.get("valueschema") or None
    if schema is None or schema.strip().lower() != TABLE_SCHEMA:
        return schema
    if name != "json":
        raise OptionError(f"valueSchema={TABLE_SCHEMA} is for valueFormat=json; {name} has a schema of its own")
    if not given.get("positions"):
        raise OptionError(f"valueSchema={TABLE_SCHEMA} needs the option 'positions', the address of the sink's table")
    return TABLE_SCHEMA


def _refuse_changed_rows(given: Mapping[str, str]) -> None:
    """Refuse a query whose rows may reach the sink with other columns than those of its table.

    After a restart, a field that the query drops or renames would have no column, and be written to `_rescued`.
    """
    landing = choice(given, "sinkLanding", ("", "direct", "rows"))
    if not landing:
        raise OptionError(
            f"valueSchema={TABLE_SCHEMA} needs rows that reach the table unchanged, and a query of your own may change "
            "them: set valueSchema to the columns as JSON, or use `azimuth sink`, which writes the rows as they are"
        )
    positions = given["positions"]
    tables = addresses(positions, "option 'positions'")
    if landing == "rows" and (len(tables) > 1 or any(TOPIC in one for one in tables)):
        raise OptionError(
            "landing=rows decodes the records of all tables into the same columns, so "
            f"valueSchema={TABLE_SCHEMA} cannot give each of the tables {', '.join(tables)} its own: set "
            "landing=direct, or valueSchema to the columns as JSON"
        )
