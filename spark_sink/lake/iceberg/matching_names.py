"""The tables of a catalog that an address with placeholders names."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from spark_sink.errors import TableError, plain_with_class
from spark_sink.lake.iceberg.catalogs import identifier, is_absent, open_catalog
from spark_sink.lake.table_addresses import ICEBERG, Storage

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_PLACEHOLDER: Final = re.compile(r"\{(topic|cluster)\}")


def tables_of_topics(address: str, storage: Storage) -> Iterator[tuple[str, str]]:
    """Yield the tables that an address names, sorted, each with the text in the place of `{topic}`.

    A catalog that does not exist is not created, and has no tables.

    Args:
        address: from `iceberg_address`; `{topic}` and `{cluster}` may stand in any part but the first.
        storage: options of the catalog.

    Raises:
        OptionError: the options describe no catalog.
        TableError: the catalog cannot list its tables.
    """
    name = identifier(address)
    if is_absent(storage):
        return
    catalog = open_catalog(name.catalog, storage)
    try:
        found = sorted(_below(catalog, (), name.path))
    except Exception as error:  # each catalog has its own errors
        raise TableError(f"{address}: its tables cannot be listed: {plain_with_class(error)}") from error
    pattern = _pattern(".".join(name.path))
    for path in found:
        text = ".".join(path)
        if match := pattern.fullmatch(text):
            yield f"{ICEBERG}{name.catalog}.{text}", match.groupdict().get("topic", "")


def _below(catalog: "Catalog", namespace: tuple[str, ...], parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the tables below a namespace whose names match the parts, one after another."""
    from pyiceberg.exceptions import NoSuchNamespaceError

    part, rest = parts[0], parts[1:]
    pattern = _pattern(part)
    try:
        if not rest:
            paths = [tuple(path) for path in catalog.list_tables(namespace)]
        elif _PLACEHOLDER.search(part):
            paths = [tuple(path) for path in catalog.list_namespaces(namespace)]
        else:
            paths = [(*namespace, part)]
    except NoSuchNamespaceError:
        return
    for path in paths:
        if pattern.fullmatch(path[-1]):
            yield from _below(catalog, path, rest) if rest else (path,)


def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of names; a placeholder that is there again stands for the same text."""
    seen: set[str] = set()

    def group(found: re.Match[str]) -> str:
        kind = found[1]
        again = kind in seen
        seen.add(kind)
        return f"(?P={kind})" if again else f"(?P<{kind}>[^.]+)"

    pieces = _PLACEHOLDER.split(name)
    matches = iter(_PLACEHOLDER.finditer(name))
    return re.compile("".join(re.escape(one) if not at % 2 else group(next(matches)) for at, one in enumerate(pieces)))
