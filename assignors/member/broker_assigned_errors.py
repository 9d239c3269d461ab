"""Errors of a member of a KIP-848 group: which of them end the membership, and the messages for users."""

from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, Message

from assignors.errors import FencedError, MembershipError

_FATAL: Final = frozenset(
    {
        KafkaError._FATAL,  # noqa: SLF001 -- librdkafka's own code
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.INVALID_REGULAR_EXPRESSION,
        KafkaError.UNSUPPORTED_ASSIGNOR,
        KafkaError.UNSUPPORTED_VERSION,
    }
)

_PASSING: Final = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 -- librdkafka's own code
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
"""Errors of a request for metadata that Kafka's protocol calls retriable; `KafkaError.retriable` knows none of them."""
_FINDING: Final = "FindCoordinator"


def is_fatal(error: KafkaError) -> bool:
    """Return whether a new member would fail, too: missing rights, wrong settings, or a newer member with its id."""
    return error.code() in _FATAL


def is_missing_right(error: KafkaError) -> bool:
    """Return whether a broker refuses a right, after which librdkafka tries again: it is not in a fatal error."""
    return error.code() in {KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}


def is_passing(error: KafkaError) -> bool:
    """Return whether the same request may succeed a moment later: a connection broke, or the broker says so."""
    return error.code() in _PASSING


def is_of_group(error: KafkaError) -> bool:
    """Return whether a broker refused a request of the member, but not the one for the group's coordinator.

    Each client of a group sends that one and reports its error, so also the client that fetches.
    """
    return error.code() >= KafkaError.UNKNOWN and not error.str().startswith(_FINDING)


def broker_error(error: KafkaError) -> KafkaError:
    """Return the broker's error inside a fatal error of librdkafka, which contains only its text."""
    if error.code() != KafkaError._FATAL:  # noqa: SLF001 -- librdkafka's own code
        return error
    causes = (KafkaError(code) for code in (*_FATAL - {error.code()}, KafkaError.UNRELEASED_INSTANCE_ID))
    return next((one for one in causes if one.str() in error.str()), error)


def is_taken_id(error: KafkaError) -> bool:
    """Return whether another member of the group has this member's `group.instance.id`."""
    return error.code() == KafkaError.UNRELEASED_INSTANCE_ID


def taken_id_message() -> Message:
    """Return the message for the program; librdkafka's own is a fatal error, after which its client does nothing."""
    text = f"ConsumerGroupHeartbeat failed: {KafkaError(KafkaError.UNRELEASED_INSTANCE_ID).str()}"
    return Message(partition=0, value=text.encode(), error=KafkaError(KafkaError.UNRELEASED_INSTANCE_ID, text))


def membership_error(
    error: BaseException, group: str, topics: Sequence[str], assignor: str | None = None
) -> MembershipError:
    """Convert an error of librdkafka; add what the user can do about it."""
    found = error.args[0] if error.args else error
    if not isinstance(found, KafkaError):
        return MembershipError(f"no member of group {group!r}: {error}")
    reason = found.str()
    if found.code() == KafkaError.UNSUPPORTED_ASSIGNOR:
        reason += (
            f": group.remote.assignor={assignor!r}: group.consumer.assignors of the brokers does not list this name"
        )
    if found.code() == KafkaError._INVALID_ARG:  # noqa: SLF001 -- librdkafka's own code
        reason += f": {list(topics)}: librdkafka and RE2 have to know the regular expression; (?: is unknown"
    kind = FencedError if found.code() == KafkaError.FENCED_INSTANCE_ID else MembershipError
    return kind(f"no member of group {group!r}: {reason}")
