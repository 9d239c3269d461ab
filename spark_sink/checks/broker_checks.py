"""Questions to the brokers of one cluster: address, password, topics that the settings select, groups, and rights."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation

from assignors.clients import ask_brokers
from assignors.settings import proposal
from spark_sink.errors import ClusterError, JoinError, LaterError

ANSWER_S: Final = 2.5
_MOST = 100  # topics whose rights are looked at
_NAMED = 3
_NO_COORDINATOR: Final = frozenset(
    {
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
_LATER: Final = "its coordinator does not answer yet, as on a new cluster"


class BrokerChecks:
    """Questions to one cluster; call `reached` before the others.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        settings: the settings that name the brokers, for messages.
        answer_s: longest wait for one answer.
    """

    def __init__(self, kafka: Mapping[str, Any], settings: str, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._kafka = {"log_level": 0, **kafka}
        self._settings = settings
        self.servers = str(kafka["bootstrap.servers"])
        self._names: Sequence[str] = ()
        self._admin: Any = None

    def reached(self) -> str:
        """Check that a broker answers.

        Raises:
            ClusterError: no broker answers, or the brokers refuse the client; the message distinguishes the two.
        """
        found, why = ask_brokers(self._kafka, self._answer_s)
        if found is None:
            raise ClusterError(f"{self.servers}: {why}; check {self._settings}")
        self._names = sorted(found.topics)
        self._admin = AdminClient(self._kafka)
        return f"{self.servers}: {len(found.brokers)} brokers of cluster {found.cluster_id}"

    def topics(self, names: Iterable[str], pattern: str | None, setting: str, creation: str = "create it") -> str:
        """Check that the selected topics exist, and that this user may read them.

        Args:
            names: topics by name.
            pattern: adds the topics whose whole name matches.
            setting: the setting that names them, for messages.
            creation: how an absent topic is created, for messages.

        Raises:
            JoinError: the user has no right to a topic.
            LaterError: a topic does not exist, or no topic matches.
            ClusterError: the brokers do not describe the topics.
        """
        named = sorted(set(names))
        matched = list(filter(selects((), pattern), self._names))
        # Topics that this user may not describe are not listed either; only a request by name tells the two apart.
        absent, refused = self._described([*named, *matched][:_MOST])
        if refused:
            raise JoinError(f"{_topics(refused)} on {self.servers}: this user may not read there: allow it READ")
        if absent:
            way = proposal(absent[0], self._names) or f"{creation}, or check {setting}"
            raise LaterError(f"{_topics(absent)} on {self.servers}: there is no such topic; {way}")
        if pattern and not matched and not named:
            raise LaterError(
                f"pattern {pattern!r} matches none of the {len(self._names)} topics of {self.servers} that this user "
                f"may see: whole names must match; check {setting}"
            )
        return f"{self.servers}: {_topics([*named, *matched])}"

    def workers_topic(self, name: str, setting: str) -> str:
        """Check that the topic of the autoscaler exists, and that this user may read it.

        Args:
            name: the topic.
            setting: the setting that names it, for messages.

        Raises:
            JoinError: the user has no right to the topic.
            LaterError: the topic does not exist.
            ClusterError: the brokers do not describe the topic.
        """
        # Created by hand it would not be compacted.
        return self.topics([name], None, setting, "start `azimuth autoscale --apply`, which creates it")

    def group(self, group: str) -> str:
        """Check that this user may join a group; a coordinator that does not answer yet is not an error.

        Raises:
            JoinError: the user has no right to the group.
        """
        refused = JoinError(f"group {group!r} on {self.servers}: this user may not join it: allow it READ there")
        # A start must not wait longer for an answer that it can do without: a new cluster's coordinator takes its time.
        answer_s = min(self._answer_s, ANSWER_S)
        options = {"include_authorized_operations": True, "request_timeout": answer_s}
        try:
            said = self._admin.describe_consumer_groups([group], **options)[group].result(answer_s)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise refused from error
            if error.args[0].code() in _NO_COORDINATOR:
                return f"group {group!r}: {_LATER}"
            return f"group {group!r}: not known yet ({error.args[0].str()})"
        except TimeoutError:
            return f"group {group!r}: {_LATER}"
        if not _may_read(said.authorized_operations):
            raise refused
        members = len(said.members)
        return f"group {group!r}: {members} member{'' if members == 1 else 's'}"

    def _described(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the topics that do not exist, and those that this user may not read."""
        if not names:
            return [], []
        asked: Mapping[str, Future[Any]] = self._admin.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=self._answer_s
        )
        absent, refused = [], []
        for name, answer in asked.items():
            try:
                if not _may_read(answer.result(self._answer_s).authorized_operations):
                    refused.append(name)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    absent.append(name)
                elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    refused.append(name)
                else:
                    text = error.args[0].str()
                    raise ClusterError(f"topic {name!r} on {self.servers}: {text}; check the brokers") from error
        return absent, refused


def _may_read(operations: Sequence[AclOperation] | None) -> bool:
    """Return whether READ is allowed; a list without DESCRIBE comes from brokers without authorization."""
    known = operations or ()
    return AclOperation.DESCRIBE not in known or AclOperation.READ in known


def _topics(names: Sequence[str]) -> str:
    some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"topic {some}" if len(names) == 1 else f"{len(names)} topics ({some})"


def selects(names: Iterable[str], pattern: str | None) -> Callable[[str], bool]:
    """Return a function that tells whether a topic is read.

    Args:
        names: topics by name.
        pattern: adds the topics whose whole name matches, except internal ones; None adds none.
    """
    named = frozenset(names)
    matches = None if pattern is None else re.compile(pattern).fullmatch
    return lambda topic: topic in named or bool(matches and not topic.startswith("__") and matches(topic))
