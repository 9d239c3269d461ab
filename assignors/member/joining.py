# ruff: noqa: SLF001 - kafka-python's coordinator tells nobody that it joins
"""What a member's joins need that kafka-python's do not do.

Say what is lost before, be seen through, and take any member's words.
"""

import logging
from typing import Any

from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.util import ensure_valid_topic_name

from assignors.protocol.subscription import encode_subscription

log = logging.getLogger(__name__)


def see_joins_through(coordinator: Any) -> None:  # noqa: ANN401 - untyped
    """Need each join until it is over, and tell that partitions are lost before the join of who was put out.

    kafka-python takes part in a join only while it finds it needed. A member that joins because its topics have changed
    has told them with the join and finds it needed no more, and a leader whose topics have changed and changed back
    neither: where the next poll came before the answer, nobody would take that, or send heartbeats, and the member
    would be out of its group without ever learning it.

    That partitions are lost kafka-python tells where the member learns it from a heartbeat. Where it learns it within a
    rebalance, from the answer to JoinGroup or SyncGroup (it stood still for longer than its session, and the answer had
    come before), it joins at once as a new member and takes its old partitions along (cooperative): those that it gets
    back would be read on from where it stood, behind what their owner in between has committed, and those that it does
    not get back would be called revoked, and their commits accepted, because they carry the new generation.
    """
    attempt = coordinator._do_join_and_sync_async

    async def join() -> bytes:
        coordinator.request_rejoin()  # needed until its end, which takes this back
        generation = coordinator._generation
        if generation.is_lost() and coordinator._subscription.assigned_partitions():
            await coordinator._on_join_prepare_async(generation.generation_id, generation.member_id)
        answer: bytes = await attempt()
        return answer

    coordinator._do_join_and_sync_async = join


def lead_any_member(coordinator: Any) -> None:  # noqa: ANN401 - untyped
    """Plan also for a group in which somebody's subscription, or a topic's name in it, makes no sense: without it.

    The broker passes on what a member sends. kafka-python raises on the leader, whose membership would end, and then
    the next leader's, one after another.
    """
    perform = coordinator._perform_assignment

    def assign(leader: str, protocol: str, members: list[Any]) -> Any:  # noqa: ANN401 - kafka-python's
        sent = [one.metadata for one in members]
        try:
            return perform(leader, protocol, members)
        except Exception:
            sense = [_sense_of(one) for one in sent]
            senseless = [one.member_id for one, a, b in zip(members, sent, sense, strict=True) if a != b]
            if not senseless:
                raise
        log.warning(
            "the subscription of member %r (and %d more) makes no sense: planning without it, or without its topics "
            "whose names are none",
            senseless[0],
            len(senseless) - 1,
        )
        for one, metadata in zip(members, sense, strict=True):
            one.metadata = metadata
        coordinator._subscription.reset_group_subscription()  # the first try has left its topics there
        return perform(leader, protocol, members)

    coordinator._perform_assignment = assign


def _sense_of(metadata: bytes) -> bytes:
    """The same where kafka-python can read it and ask for its topics, else what is left of it."""
    try:
        read = ConsumerProtocolSubscription.decode(metadata)
        topics = [one for one in read.topics if _is_name(one)]
        if topics == list(read.topics):
            return metadata
        read.topics = topics
        left: bytes = read.encode()
    except Exception:  # noqa: BLE001 - whatever foreign bytes break
        left = encode_subscription((), (), -1, None, b"").encode()
    return left


def _is_name(topic: object) -> bool:
    try:
        ensure_valid_topic_name(topic)
    except (TypeError, ValueError):
        return False
    return True
