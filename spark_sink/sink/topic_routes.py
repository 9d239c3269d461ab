"""The table of each topic: one for all, one for each, or by regular expression. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from assignors.errors import NO_PATTERN
from spark_sink.errors import OptionError
from spark_sink.formats.quarantine_addresses import refuse_quarantine_name
from spark_sink.lake.mistaken_addresses import refuse_mistaken
from spark_sink.lake.table_addresses import PLACEHOLDER, table_uri, with_name
from spark_sink.options.option_texts import json_value

_OTHER_NAME = "give the table a name that does not end in _quarantine"
_ROUTE = "send this topic to a table with another name by the option 'routes', or do not read it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Tables by topic.

    Attributes:
        default: address for topics without a matching rule; `{topic}` in it stands for the topic.
        rules: regular expression of whole topic names, and address; the first match counts.
    """

    default: str
    rules: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, path: str, routes: str | None = None, *, address: Callable[[str], str] = table_uri) -> "Routes":
        """Read the options `path` and `routes` (a JSON object, regular expression to address).

        Args:
            path: the option.
            routes: the option; None if it is not set.
            address: returns the canonical address of a table.

        Raises:
            OptionError: an address is empty or a quarantine's, a rule is not a regular expression, or `routes` not a
                JSON object of texts.
        """
        try:
            given = json_value(routes, "routes") if routes else {}
            for table in (path, *given.values()):
                refuse_mistaken(table, (PLACEHOLDER,))
            for pattern, table in given.items():
                re.compile(pattern)
                _refuse_empty(pattern, table)
            rules = tuple((pattern, address(table)) for pattern, table in given.items())
        except (ValueError, AttributeError, *NO_PATTERN) as error:
            raise OptionError(
                f'option \'routes\': {routes!r}, need JSON {{"regex of topics": "address"}}: {error}'
            ) from error
        found = cls(default=address(path), rules=rules)
        refuse_quarantine_name(found.default, "option 'path': the rows", _OTHER_NAME)
        for pattern, table in rules:
            refuse_quarantine_name(table, f"option 'routes': topics of {pattern!r}", _OTHER_NAME)
        return found

    def table(self, topic: str) -> str:
        """Return the address of the table of one topic.

        Raises:
            OptionError: it is the address of a quarantine, because the topic's name ends in `_quarantine`.
        """
        found = next((address for pattern, address in self.rules if re.fullmatch(pattern, topic)), self.default)
        address = with_name(found, PLACEHOLDER, topic)
        refuse_quarantine_name(address, f"topic {topic!r}", _ROUTE)
        return address

    def others(self, topic: str) -> set[str]:
        """Return the addresses of the tables that a topic would have by the other rules."""
        return {with_name(one, PLACEHOLDER, topic) for one in self.addresses()} - {self.table(topic)}

    def by_table(self, topics: Iterable[str]) -> Mapping[str, set[str]]:
        """Group topics by the address of their table.

        Raises:
            OptionError: a table has the address of a quarantine.
        """
        found: dict[str, set[str]] = {}
        for topic in topics:
            found.setdefault(self.table(topic), set()).add(topic)
        return found

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses, with placeholders."""
        return (self.default, *(address for _, address in self.rules))


def _refuse_empty(pattern: str, table: str) -> None:
    if not table.strip():
        raise OptionError(f"option 'routes': {pattern!r} has no address")
