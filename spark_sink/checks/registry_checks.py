"""The question to a schema registry: whether it answers, and has the subject."""

from typing import Any, Final

from assignors.clients import shown
from spark_sink.errors import FetchError, OptionError
from spark_sink.formats import Registry
from spark_sink.options.value_format import ValueFormat

_QUICK: Final = {"timeout": 2.0, "max.retries": 0}
_WAY = "check schema.registry.url and its credentials"


def check_registry(value: ValueFormat) -> str:
    """Check that the registry answers and has the subject, unless the schema is given.

    Raises:
        FetchError: the registry does not answer, or refuses the client.
        OptionError: it has no such subject, or its client refuses a property.
    """
    url, subject = shown(str(value.registry["url"])), str(value.subject)
    properties: dict[str, Any] = {**_QUICK, **value.registry}
    try:
        found = Registry(properties, serialized=value.name == "protobuf").latest(subject)
    except FetchError as error:
        raise FetchError(f"schema registry {url}: {error.__cause__ or error}; {_WAY}") from error
    except (TypeError, ValueError) as error:
        raise OptionError(f"schema registry {url}: {error}; {_WAY}") from error
    if found is None and not value.schema:
        raise OptionError(
            f"schema registry {url}: there is no subject {subject!r}; register its schema, or name it with valueSubject"
        )
    return f"{url}: subject {subject!r}"
