# ruff: noqa: SLF001 -- kafka-python has no public hooks in a join
"""Two corrections of kafka-python's joins: each one is finished, and one member's bad subscription stops no leader."""

import logging
from typing import Any

from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.util import ensure_valid_topic_name

from assignors.protocol.subscription import encode_subscription

log = logging.getLogger(__name__)


def see_joins_through(coordinator: Any) -> None:  # noqa: ANN401 - untyped
    """Have each join finished, and `on_lost` called before a member that was removed joins again.

    kafka-python goes on with a join only while `need_rejoin` is true. Once JoinGroup is sent, that may turn false: for
    a member that joins because its topics have changed (JoinGroup carries them), and for a leader whose topics have
    changed and changed back. An answer that comes between two polls would then never be used, no heartbeat would be
    sent, and the member would leave its group without noticing. So the rejoin is requested until the join is over.

    kafka-python reports lost partitions where a heartbeat finds that the member was removed. Where the answer to
    JoinGroup or SyncGroup says so (the process was suspended for longer than its session), it joins at once as a new
    member and, under a cooperative assignor, keeps its old partitions. Those it gets back would be read on from its
    old positions, behind the offsets that their owner in between has committed. Those it does not get back would be
    reported as revoked, and their commits accepted, because they carry the new generation. So the loss is reported
    before each attempt.
    """
    attempt = coordinator._do_join_and_sync_async

    async def join() -> bytes:
        coordinator.request_rejoin()  # the end of the join takes this back
        generation = coordinator._generation
        if generation.is_lost() and coordinator._subscription.assigned_partitions():
            await coordinator._on_join_prepare_async(generation.generation_id, generation.member_id)
        answer: bytes = await attempt()
        return answer

    coordinator._do_join_and_sync_async = join


def lead_any_member(coordinator: Any) -> None:  # noqa: ANN401 - untyped
    """Plan for the other members where one has sent a subscription that cannot be read.

    The broker passes on whatever a member sends. kafka-python raises on the leader, which ends its membership, then
    that of the next leader, and so on.
    """
    perform = coordinator._perform_assignment

    def assign(leader: str, protocol: str, members: list[Any]) -> Any:  # noqa: ANN401 - kafka-python's
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
        coordinator._subscription.reset_group_subscription()  # the first try has left its topics there
        return perform(leader, protocol, members)

    coordinator._perform_assignment = assign


def _readable(metadata: bytes) -> bytes:
    """Return the subscription as sent if kafka-python can read it and ask for its topics, else the rest of it."""
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
