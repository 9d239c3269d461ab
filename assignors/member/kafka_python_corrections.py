# ruff: noqa: ANN401 -- kafka-python is untyped
# ruff: noqa: SLF001 -- kafka-python has no public hooks in a join
"""Corrections of kafka-python's joins, heartbeats and metadata, each described at its function."""

import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.errors import (
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    LeaderNotAvailableError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    RequestTimedOutError,
    UnknownError,
    UnknownMemberIdError,
)
from kafka.future import Future
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.util import ensure_valid_topic_name

from assignors.clients.kafka_python_internals import last_metadata_ms
from assignors.protocol.join_subscription import encode_subscription

log = logging.getLogger(__name__)
_JOINS_AT_ONCE, _JOIN_PAUSE_S = 5, 0.1
_FRESH_MS: Final = 200.0
_PASSING = frozenset({LeaderNotAvailableError.errno, RequestTimedOutError.errno, UnknownError.errno})


def correct_joins(coordinator: Any, joined: Callable[[int], Awaitable[None]]) -> None:
    """Make all corrections in the coordinator of a new member; `joined` is for `report_each_join`."""
    see_joins_through(coordinator)
    pause_between_refused_joins(coordinator)
    leave_when_refused(coordinator)
    heartbeat_when_due(coordinator)
    keep_topics_of_passing_errors(coordinator._cluster)
    release_deleted_topics(coordinator)
    lead_any_member(coordinator)
    list_topics_once_a_join(coordinator)
    report_each_join(coordinator, joined)


def see_joins_through(coordinator: Any) -> None:
    """Finish each join, and call `on_lost` before a removed member rejoins.

    kafka-python continues a join only while `need_rejoin` is true. After JoinGroup is sent, it may become false: for a
    member that joins because its topics have changed (JoinGroup contains them), and for a leader whose topics have
    changed and changed back. An answer that arrives between two polls would then never be used, no heartbeat would be
    sent, and the member would leave its group without noticing. So the rejoin is requested until the join is complete.

    kafka-python reports lost partitions if a heartbeat finds that the member was removed. The answer to JoinGroup or
    SyncGroup may also show this, if the process was suspended for longer than its session. The member then joins at
    once as a new one and, under a cooperative assignor, keeps its old partitions. It would read the partitions that it
    gets back from its old positions, which are before the offsets that the owner in between has committed. It would
    report the partitions that it does not get back as revoked, and their commits would be accepted, because they have
    the new generation. So the loss is reported before each attempt.
    """
    attempt = coordinator._do_join_and_sync_async

    async def join() -> bytes:
        coordinator.request_rejoin()  # the end of the join resets this
        generation = coordinator._generation
        if generation.is_lost() and coordinator._subscription.assigned_partitions():
            await coordinator._on_join_prepare_async(generation.generation_id, generation.member_id)
        answer: bytes = await attempt()
        return answer

    coordinator._do_join_and_sync_async = join


def pause_between_refused_joins(coordinator: Any) -> None:
    """Let a tenth of a second pass before a join if several in a row were refused; kafka-python sends 1,000 a second.

    The first ones go at once: a new member is refused once (KIP-394), and members that start together a few times.
    """
    attempt = coordinator._do_join_and_sync_async
    refused = 0

    async def join() -> bytes:
        nonlocal refused
        if refused >= _JOINS_AT_ONCE:
            await coordinator._net.sleep(_JOIN_PAUSE_S)
        try:
            answer: bytes = await attempt()
        except (UnknownMemberIdError, RebalanceInProgressError, IllegalGenerationError, MemberIdRequiredError):
            refused += 1
            raise
        refused = 0
        return answer

    coordinator._do_join_and_sync_async = join


def list_topics_once_a_join(coordinator: Any) -> None:
    """List the topics for a pattern before a join, not at each poll until its end.

    kafka-python lists all topics of the cluster at each poll of a member that has to join, and waits for the answer,
    also while the join is under way and when its result has arrived. Between two lists it lets `retry_backoff_ms` pass,
    so a join took 0.2 s longer with 186 topics. Topics that are created during a join are found by the next list that
    is due, as for a subscription to names. A list that is younger than 0.2 s is not requested again.
    """
    cluster, poll = coordinator._cluster, coordinator.poll
    request = cluster.request_update
    polling: int | None = None  # the thread that polls, because the event loop's thread requests lists, too

    def requested() -> Any:
        if polling != threading.get_ident():
            return request()
        fresh = time.monotonic() * 1000 - last_metadata_ms(cluster) < _FRESH_MS
        return Future().success(cluster) if fresh or coordinator._join_task is not None else request()

    def polled(timeout_ms: float | None = None) -> Any:
        nonlocal polling
        polling = threading.get_ident()
        try:
            return poll(timeout_ms=timeout_ms)
        finally:
            polling = None

    cluster.request_update = requested
    coordinator.poll = polled


def report_each_join(coordinator: Any, joined: Callable[[int], Awaitable[None]]) -> None:
    """Await `joined` with the generation at the end of each rebalance.

    kafka-python calls no listener at the end of a cooperative rebalance that brings this member no partition.
    """
    complete = coordinator._on_join_complete_async

    async def completed(generation: int, *details: object) -> None:
        await complete(generation, *details)
        await joined(generation)

    coordinator._on_join_complete_async = completed


def release_deleted_topics(coordinator: Any) -> None:
    """Release the partitions of deleted topics before a join, as librdkafka does.

    kafka-python does so for topics that have left the subscription. The others it releases under a cooperative assignor
    when the answer to the join lacks them, and then the whole group rebalances a second time. A topic that was never
    listed is not a deleted one: the leader may know it first.
    """
    cluster, subscription = coordinator._cluster, coordinator._subscription
    update, prepare = cluster.update_metadata, coordinator._on_join_prepare_async
    listed: set[str] = set()

    def updated(metadata: Any) -> None:
        update(metadata)
        listed.update(cluster.topics(exclude_internal_topics=False))

    async def prepared(*details: Any, **more: Any) -> None:
        cooperative = coordinator._rebalance_protocol is RebalanceProtocol.COOPERATIVE
        if cooperative and not coordinator._generation.is_lost():
            absent = listed.difference(cluster.topics(exclude_internal_topics=False), cluster.unauthorized_topics)
            owned = set(subscription.assigned_partitions())
            if not absent.isdisjoint(one.topic for one in owned):
                subscribed = subscription.subscription.difference(absent)
                deleted = {one for one in owned if one.topic not in subscribed}
                subscription.mark_pending_revocation(deleted)
                await subscription.rebalance_listener.on_partitions_revoked(deleted)
                subscription.assign_from_subscribed(sorted(owned - deleted))
        await prepare(*details, **more)

    cluster.update_metadata = updated
    coordinator._on_join_prepare_async = prepared


def leave_when_refused(coordinator: Any) -> None:
    """Lose the membership when a heartbeat is refused for missing rights, and join again, as librdkafka does.

    kafka-python keeps the partitions although the broker's session ends, and others may own them then.
    """
    send = coordinator._send_heartbeat_request

    async def heartbeat() -> None:
        try:
            await send()
        except GroupAuthorizationFailedError:
            coordinator.reset_generation()
            raise

    coordinator._send_heartbeat_request = heartbeat


def leave_although_static(coordinator: Any) -> None:
    """Let the next leave send LeaveGroup also for a static member, as `unsubscribe` of librdkafka does."""
    coordinator.is_dynamic_member = lambda: True


def heartbeat_when_due(coordinator: Any) -> None:
    """Send heartbeats at their interval, however often the coordinator is looked up.

    kafka-python begins the interval again when it finds the coordinator, and looks it up after each refused commit. A
    program whose commits were refused for a session lost its partitions.
    """
    find = coordinator._handle_find_coordinator_response

    def found(response: Any) -> Any:
        heartbeat = coordinator.heartbeat
        begun = heartbeat.last_reset
        number = find(response)
        if coordinator._heartbeat_enabled:
            heartbeat.last_receive = heartbeat.last_reset  # the session, which is checked there, begins again
            heartbeat.last_reset = begun
        return number

    coordinator._handle_find_coordinator_response = found


def keep_topics_of_passing_errors(cluster: Any) -> None:
    """Keep what is known of a topic while a broker answers with an error that passes, as librdkafka does.

    kafka-python forgets its partitions, so the member would lose all of them, and join again.
    """
    update = cluster.update_metadata

    def updated(metadata: Any) -> None:
        known, again = cluster._partitions, False
        for topic in metadata.topics:
            if topic.error_code in _PASSING and topic.name in known:
                topic.error_code, topic.partitions, again = 0, list(known[topic.name].values()), True
        update(metadata)
        if again:
            cluster.request_update()

    cluster.update_metadata = updated


def lead_any_member(coordinator: Any) -> None:
    """Plan for the other members if one has sent a subscription that cannot be read.

    The broker does not check subscriptions. kafka-python raises an error on the leader, which ends its membership, then
    that of the next leader, and so on.
    """
    perform = coordinator._perform_assignment

    def assign(leader: str, protocol: str, members: list[Any]) -> Any:
        sent = [one.metadata for one in members]
        try:
            return perform(leader, protocol, members)
        except Exception:
            readable = [_readable(one) for one in sent]
            unreadable = [one.member_id for one, a, b in zip(members, sent, readable, strict=True) if a != b]
            if not unreadable:
                raise
        log.warning(
            "the subscription of member %r (and %d more) cannot be read: planning without it, or without its topics "
            "whose names are illegal",
            unreadable[0],
            len(unreadable) - 1,
        )
        for one, metadata in zip(members, readable, strict=True):
            one.metadata = metadata
        coordinator._subscription.reset_group_subscription()  # the first attempt has left its topics there
        return perform(leader, protocol, members)

    coordinator._perform_assignment = assign


def _readable(metadata: bytes) -> bytes:
    """Return the subscription unchanged if kafka-python can read it and its topics are valid, else the valid part."""
    try:
        read = ConsumerProtocolSubscription.decode(metadata)
        topics = [one for one in read.topics if _is_name(one)]
        if topics == list(read.topics):
            return metadata
        read.topics = topics
        left: bytes = read.encode()
    except Exception:  # noqa: BLE001 -- foreign bytes may break anything
        left = encode_subscription((), (), -1, None, b"").encode()
    return left


def _is_name(topic: object) -> bool:
    try:
        ensure_valid_topic_name(topic)
    except (TypeError, ValueError):
        return False
    return True
