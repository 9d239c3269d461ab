"""The program's subscription: names and patterns, for the member and for errors of topics."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from assignors.clients.topic_names import is_topic_name
from assignors.consumer.consumer_errors import ArgumentError
from assignors.errors import NO_PATTERN

_NOTHING: Final = "(?!)"
_CLASS: Final = re.compile(r"\[:([a-z]+):\]")
# librdkafka has POSIX's expressions, whose classes Python reads as a set of these letters.
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True)
class Subscription:
    """Names and patterns from the program.

    Attributes:
        names: plain names, including invalid ones.
        patterns: regular expressions; each begins with ^ and is searched in names, as in librdkafka: of two
            alternatives only the one with ^ has to match the beginning.
        hidden: names and patterns of `topic.blacklist`, whose topics count as absent.
    """

    names: tuple[str, ...]
    patterns: tuple[str, ...]
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(cls, topics: Iterable[str], blacklist: str = "") -> "Subscription":
        """Read the argument of `subscribe`, and librdkafka's topic.blacklist.

        Raises:
            ArgumentError: not a list of names, an empty list, or a pattern that is not a regular expression.
        """
        # A text is a sequence of letters, too, and "^flights" would be a pattern for every topic.
        wanted = topics if isinstance(topics, str) else list(topics)
        if not wanted or isinstance(wanted, str) or not all(isinstance(one, str) and one for one in wanted):
            raise ArgumentError(f"subscribe({wanted!r}): need a list of topic names, or of patterns that begin with ^")
        for one in wanted:
            if any("\ud800" <= letter <= "\udfff" for letter in one):  # librdkafka would end the process
                raise ArgumentError(f"subscribe(): {one!r} contains half of a surrogate pair, so it is not valid text")
            try:
                re.compile(_python(one) if one.startswith("^") else "")
            except NO_PATTERN as error:
                raise ArgumentError(f"subscribe(): {one!r} is not a regular expression ({error})") from error
        ordered = sorted(set(wanted))
        return cls(
            tuple(one for one in ordered if not one.startswith("^")),
            tuple(one for one in ordered if one[0] == "^"),
            tuple(one for one in blacklist.split(",") if one),
        )

    def for_member(self) -> Mapping[str, Any]:
        """Return `topics` or `pattern` of a `GroupMember`: if there is a pattern, names become part of it."""
        legal = [name for name in self.names if is_topic_name(name) and not self._hides(name)]
        if legal and not self.patterns:
            return {"topics": legal}
        parts = [*map(_whole_names, self.patterns), *(re.escape(name) for name in legal)]
        hidden = "|".join(map(_whole_names, self.hidden))
        without_hidden = f"(?!(?:{hidden})$)" if hidden else ""
        return {"pattern": f"{without_hidden}(?:{'|'.join(parts) or _NOTHING})"}

    def for_broker(self) -> list[str]:
        """Return names and patterns as librdkafka's `subscribe` takes them.

        The broker compares a pattern with whole names, so its end is added, as in `for_member`.
        """
        return [*self.names, *(f"^({one}).*" for one in self.patterns)]

    def matches(self, known: Iterable[str]) -> dict[str, set[str]]:
        """Return which of these topics each name and each pattern matches, in the order of names, then patterns."""
        topics = {name for name in known if not self._hides(name)}
        by_name = {name: topics & {name} for name in self.names}
        return by_name | {one: set(filter(re.compile(_python(one)).search, topics)) for one in self.patterns}

    def _hides(self, name: str) -> bool:
        return any(re.fullmatch(_whole_names(one), name) for one in self.hidden)


def _whole_names(one: str) -> str:
    """Return an expression for the whole names that a pattern or a plain name matches."""
    return f".*?(?:{_python(one)}).*" if one.startswith("^") else re.escape(one)


def _python(pattern: str) -> str:
    """Return POSIX's regular expression as Python's."""
    return _CLASS.sub(lambda found: _CLASSES.get(found[1], found[0]), pattern)
