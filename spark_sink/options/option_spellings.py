"""Names of options in messages, in the spelling of the place where the user has set them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from spark_sink.errors import SparkSinkError

_QUERY: Final = (
    "valueFormat",
    "valueSchema",
    "valueSubject",
    "valueMessage",
    "unknownFields",
    "valueNull",
    "partitionBy",
    "mergeSchema",
    "schema.registry.url",
    "schema.registry",
)
_NAMES: Final = {name.lower(): name for name in _QUERY}
_SWITCHES: Final = frozenset({"mergeSchema"})
_NAMED: Final = re.compile(
    rf"(?i)(?<![\w.-])(option )?('?)({'|'.join(map(re.escape, _QUERY))})\2(?![\w-])(?:=(\w+))?",
)


class Spelling(Enum):
    """Where options are set: in a query (`valueFormat`), a TOML file (`value_format`) or flags (`--value-format`)."""

    QUERY = "query"
    FILE = "file"
    FLAG = "flag"


def respelled(text: str, spelling: Spelling) -> str:
    """Return a message with the names of options of rows in this spelling.

    Args:
        text: a message with the names of a query, in any case: `option 'valueFormat'`, `mergeSchema=true`.
        spelling: the spelling.
    """
    if spelling is Spelling.QUERY:
        return text
    return _NAMED.sub(_in_file if spelling is Spelling.FILE else _as_flag, text)


@contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """Change the message of an error of the block to this spelling.

    Raises:
        SparkSinkError: the error.
    """
    try:
        yield
    except SparkSinkError as error:
        error.args = (respelled(str(error), spelling), *error.args[1:])
        raise


def _in_file(found: re.Match[str]) -> str:
    option, quote, name, value = found.groups()
    words = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", _NAMES[name.lower()])
    setting = words.replace("schema.registry", "schema_registry")
    return f"{'setting ' if option else ''}{quote}{setting}{quote}{f'={value}' if value else ''}"


def _as_flag(found: re.Match[str]) -> str:
    option, _, name, value = found.groups()
    name = _NAMES[name.lower()]
    words = re.sub("[A-Z]", lambda capital: f"-{capital[0].lower()}", name)
    flag = f"--{words}".replace("schema.registry", "schema-registry").replace(".url", " url=ADDRESS")
    given = f" {value}" if value and name not in _SWITCHES else ""
    return f"{'flag ' if option else ''}{flag}{given}"
