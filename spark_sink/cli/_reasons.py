"""Adds the cause to errors of commands that send requests to brokers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spark_sink.errors import ClusterError, LagError


@contextmanager
def reasoned(kafka: Mapping[str, str]) -> Iterator[None]:
    """Add the reason why the brokers cannot be reached; errors of kafka-python and timeouts do not contain it.

    Raises:
        GroupError, LagError, ClusterError: the error of the block, with the reason.
    """
    from assignors.errors import GroupError  # noqa: PLC0415 -- its package loads slowly, and --help does not need it

    try:
        yield
    except (GroupError, LagError, ClusterError) as error:
        from spark_sink.kafka.client_property_names import why_unreachable  # noqa: PLC0415 -- clients load slowly

        if not (why := why_unreachable(kafka)):
            raise
        raise type(error)(f"{error}; {why}") from error
