"""Errors of commands that ask brokers, with their cause."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spark_sink.errors import ClusterError, LagError


@contextmanager
def reasoned(kafka: Mapping[str, str]) -> Iterator[None]:
    """Add why the brokers cannot be reached: errors of kafka-python and time-outs do not say it.

    Raises:
        GroupError, LagError, ClusterError: as within, with the reason.
    """
    from assignors.errors import GroupError  # noqa: PLC0415 -- its package loads slowly, and --help has no use for it

    try:
        yield
    except (GroupError, LagError, ClusterError) as error:
        from spark_sink.kafka.client_properties import why_unreachable  # noqa: PLC0415 -- clients load slowly

        if not (why := why_unreachable(kafka)):
            raise
        raise type(error)(f"{error}; {why}") from error
