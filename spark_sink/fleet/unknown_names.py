"""Refuses names in a fleet's file that mean nothing: they would have no effect, and no agent would say so. Pure."""

from collections.abc import Collection, Iterable

from assignors.settings import proposal
from spark_sink.errors import OptionError


def refuse_unknown_sources(names: Iterable[str], sources: Collection[str], setting: str) -> None:
    """Refuse a name `<source>/<topic>` whose source is not in the file.

    Args:
        names: of topics, with or without a source.
        sources: the names of the file's sources.
        setting: the setting with the names, for the message.

    Raises:
        OptionError: there is no such source.
    """
    for name in names:
        source, slash, topic = name.partition("/")
        if slash and source not in sources:
            known = proposal(name, [f"{one}/{topic}" for one in sources]) or f"known are {', '.join(sources)}"
            raise OptionError(f"{setting} {name!r}: there is no source {source!r}; {known}")
