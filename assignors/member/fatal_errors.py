"""Errors of a group: those that end a membership, and those that new settings or rights on the brokers can fix."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from kafka import errors as kafka_errors
from kafka.errors import KafkaError

from assignors.errors import MembershipError

log = logging.getLogger(__name__)

# Errors that a retry cannot fix; MembershipError: an assignor refuses this member. After all other errors of the
# protocol the thread retries: brokers die and return.
FATAL: Final = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.FencedInstanceIdError,
    kafka_errors.GroupAuthorizationFailedError,
    kafka_errors.GroupMaxSizeReachedError,
    kafka_errors.InconsistentGroupProtocolError,
    kafka_errors.InvalidGroupIdError,
    kafka_errors.InvalidSessionTimeoutError,
    kafka_errors.KafkaConfigurationError,
    kafka_errors.UnsupportedVersionError,
    MembershipError,
)
# Of these, librdkafka's consumer tries again after: rights, settings and members of the group change.
_MENDED_ELSEWHERE: Final = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.GroupAuthorizationFailedError,
    kafka_errors.GroupMaxSizeReachedError,
    kafka_errors.InconsistentGroupProtocolError,
    kafka_errors.InvalidGroupIdError,
    kafka_errors.InvalidSessionTimeoutError,
)
# Reported in another way: by on_topics, and by the client that fetches.
_REPORTED_ELSEWHERE: Final = (
    kafka_errors.InvalidTopicError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.TopicAuthorizationFailedError,
    kafka_errors.UnknownTopicOrPartitionError,
)
# What the user can do about errors whose own text does not say it.
_WAYS_OUT: Final[Mapping[type[BaseException], str]] = {
    kafka_errors.FencedInstanceIdError: (
        "a newer member uses this group.instance.id: give each running member an id of its own"
    ),
    kafka_errors.InconsistentGroupProtocolError: (
        "the other members use other assignors: give all members of the group the same ones"
    ),
}

OnRefused = Callable[[KafkaError, bool], object]


def way_out(error: BaseException) -> str:
    """Return what the user can do about an error, to append to its text; empty if its text says it."""
    found = _WAYS_OUT.get(type(error))
    return f"; {found}" if found else ""


class Refusals:
    """The errors that a member survives.

    Contract: a distinct error is reported once, and again only after the member has joined.

    Args:
        group: the group's name.
        on_refused: called with an error that a broker has answered, and whether it was asked for the coordinator; None
            if the errors in FATAL end the membership.

    Attributes:
        standing: whether the group refuses the member at present.
    """

    def __init__(self, group: str, on_refused: OnRefused | None) -> None:
        self._group = group
        self._on_refused = on_refused
        self._reported: set[tuple[type[KafkaError], bool]] = set()
        self.standing = False

    def ends(self, error: Exception) -> bool:
        """Return whether the error ends the membership."""
        survived = self._on_refused is not None and isinstance(error, _MENDED_ELSEWHERE)
        return isinstance(error, FATAL) and not survived

    def add(self, error: KafkaError, *, finding: bool) -> None:
        """Report an error after which the member tries again."""
        refused = not error.retriable and getattr(error, "errno", 0) != 0
        if self._on_refused is None or not refused:
            log.warning("group %r: %r, trying again", self._group, error)
            return
        self.standing = True
        if (type(error), finding) in self._reported:
            return
        self._reported.add((type(error), finding))
        log.warning("group %r: %r, trying again until it is accepted%s", self._group, error, way_out(error))
        if not isinstance(error, _REPORTED_ELSEWHERE):
            self._on_refused(error, finding)

    def joined(self) -> None:
        """Report each error again."""
        self._reported.clear()
        self.standing = False
