"""The program's subscription: names and patterns, for the member and for errors of topics."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from assignors.clients.topic_names import is_topic_name
from assignors.consumer.consumer_errors import ArgumentError

_NOTHING: Final = "(?!)"


@dataclass(frozen=True, slots=True)
class Subscription:
    """Names and patterns from the program.

    Attributes:
        names: plain names, including invalid ones.
        patterns: regular expressions; each begins with ^ and matches the beginning of names, as in librdkafka.
    """

    names: tuple[str, ...]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, topics: Iterable[str]) -> "Subscription":
        """Read the argument of `subscribe`.

        Raises:
            ArgumentError: not a list of names, an empty list, or a pattern that is not a regular expression.
        """
        # A text is a sequence of letters, too, and "^flights" would be a pattern for every topic.
        wanted = topics if isinstance(topics, str) else list(topics)
        if not wanted or isinstance(wanted, str) or not all(isinstance(one, str) and one for one in wanted):
            raise ArgumentError(f"subscribe({wanted!r}): need a list of topic names, or of patterns that begin with ^")
        for one in wanted:
            if any("\ud800" <= letter <= "\udfff" for letter in one):  # librdkafka would end the process
                raise ArgumentError(f"subscribe(): {one!r} contains half of a surrogate pair, and is no valid text")
            try:
                re.compile(one if one.startswith("^") else "")
            except re.error as error:
                raise ArgumentError(f"subscribe(): {one!r} is no regular expression ({error})") from error
        ordered = sorted(set(wanted))
        return cls(
            tuple(one for one in ordered if not one.startswith("^")), tuple(one for one in ordered if one[0] == "^")
        )

    def for_member(self) -> Mapping[str, Any]:
        """Return `topics` or `pattern` of a `GroupMember`: if there is a pattern, names become part of it."""
        legal = [name for name in self.names if is_topic_name(name)]
        if legal and not self.patterns:
            return {"topics": legal}
        parts = [*(f"(?:{one}).*" for one in self.patterns), *(re.escape(name) for name in legal)]
        return {"pattern": "|".join(parts) or _NOTHING}

    def for_broker(self) -> list[str]:
        """Return names and patterns as librdkafka's `subscribe` takes them.

        The broker compares a pattern with whole names, so its end is added, as in `for_member`.
        """
        return [*self.names, *(f"^({one}).*" for one in self.patterns)]

    def unmatched(self, known: Iterable[str]) -> list[str]:
        """Return the names and patterns that match none of these topics."""
        topics = frozenset(known)
        missing = [name for name in self.names if name not in topics]
        return missing + [one for one in self.patterns if not any(map(re.compile(one).match, topics))]
