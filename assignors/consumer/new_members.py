"""The members that a consumer starts, one after another: each with the same settings, assignors and callbacks."""

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Message
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.consumer.error_messages import TopicErrors, refusals_as_messages
from assignors.consumer.fetching import Fetching
from assignors.consumer.poll_interval import ProgramAwake, quiet_s
from assignors.consumer.rebalance_events import Rebalances
from assignors.consumer.split_configuration import Configuration
from assignors.consumer.subscription import Subscription
from assignors.member.broker_assigned_errors import is_taken_id
from assignors.member.broker_assigned_member import BrokerAssignedMember
from assignors.member.group_member import GroupMember


class NewMembers:
    """Starts members.

    Contract: `start` and `end` are called in other threads than the program's, because they take locks in Python.

    Args:
        config: configuration of the consumer.
        assignors: the assignors that each member offers.
        fetching: interrupted when a member's ownership changes.
        topic_errors: gets the existing topics, and the errors of the group.
    """

    def __init__(
        self,
        config: Configuration,
        *,
        assignors: Sequence[AbstractPartitionAssignor],
        fetching: Fetching,
        topic_errors: TopicErrors,
    ) -> None:
        self._config = config
        self._assignors = assignors
        self._fetching = fetching
        self._topic_errors = topic_errors
        self._credentials: dict[str, str] = {}
        self._librdkafka_credentials: dict[str, str] = {}
        self._one_at_a_time = threading.Lock()
        self._last: weakref.ref[GroupMember | BrokerAssignedMember] | None = None

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Use these credentials for later members."""
        self._credentials = {"sasl_plain_username": username, "sasl_plain_password": password}
        self._librdkafka_credentials = {"sasl.username": username, "sasl.password": password}

    def start(self, subscription: Subscription, rebalances: Rebalances) -> GroupMember | BrokerAssignedMember:
        """Start a member that joins for these topics, after the end of the last one.

        The last one may still run: if a signal interrupts a join, its member ends in the background, and the program
        may join again at once. An assignor serves one member, and a `group.instance.id` is the name of one.

        Args:
            subscription: the topics.
            rebalances: gets the changes of its partitions.

        Raises:
            MembershipError: no broker answered.
        """
        config = self._config.broker_assigned
        with self._one_at_a_time:
            last = None if self._last is None else self._last()
            if last is not None:
                last.close()
            made = (
                self._of_classic(subscription, rebalances)
                if config is None
                else self._of_broker(config, subscription, rebalances)
            )
            self._last = weakref.ref(made)
            return made.start()

    def end(self, member: GroupMember | BrokerAssignedMember, rebalances: Rebalances) -> None:
        """End a member whose start was interrupted; the program handles none of its changes."""
        rebalances.abandon()
        member.close()

    def _of_classic(self, subscription: Subscription, rebalances: Rebalances) -> GroupMember:
        return GroupMember(
            {**self._config.member, **self._credentials},
            **subscription.for_member(),
            assignors=self._assignors,
            on_assigned=rebalances.assigned,
            on_revoked=rebalances.revoked,
            on_lost=rebalances.lost,
            callback_timeout_s=self._config.max_poll_s,
            awake=ProgramAwake(self._fetching, self._config),
            on_change=self._fetching.ahead.interrupt,
            on_topics=self._topic_errors.update,
            on_refused=refusals_as_messages(self._topic_errors.add),
            quiet_s=quiet_s(self._config),
            ends_with_session=True,
            reports_empty=True,
        )

    def _of_broker(
        self, config: Mapping[str, Any], subscription: Subscription, rebalances: Rebalances
    ) -> BrokerAssignedMember:
        return BrokerAssignedMember(
            {**config, **self._librdkafka_credentials},
            topics=subscription.for_broker(),
            on_assigned=rebalances.assigned,
            on_revoked=rebalances.revoked,
            on_lost=rebalances.lost,
            awake=ProgramAwake(self._fetching, self._config),
            on_change=self._fetching.ahead.interrupt,
            on_error=self._hear,
            waits_for_rights=True,
            reports_empty=True,
        )

    def _hear(self, message: Message) -> None:
        error = message.error()
        if error is not None and is_taken_id(error):
            self._topic_errors.add_refusal(message)
        else:
            self._topic_errors.add(message)
