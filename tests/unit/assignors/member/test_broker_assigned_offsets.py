"""Commits of a member whose broker assigns: what each refusal of a broker means."""

from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignors.consumer.consumer_errors import consumer_error
from assignors.errors import FencedError, MembershipError, NotOwnedError
from assignors.member import broker_assigned_offsets as module
from assignors.member.broker_assigned_offsets import BrokerAssignedOffsets
from assignors.member.ownership import OwnershipCell

KEY: Final = ("t", 0)


class Client:
    """Refuses commits with these codes, one after another, then accepts."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.accepted = 0

    def commit(self, **_: Any) -> list[Any]:
        """As confluent-kafka's."""
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        self.accepted += 1
        return []


def offsets(client: Client) -> BrokerAssignedOffsets:
    """The commits of a member that owns one partition."""
    cell = OwnershipCell()
    cell.change(lambda now: now.plus([KEY], 3))
    return BrokerAssignedOffsets(client, cell, "g")  # type: ignore[arg-type]  # a client for its commits only


def test_a_commit_with_an_old_epoch_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker raised the epoch while the commit was on its way: the partition still belongs to this member."""
    monkeypatch.setattr(module, "_STALE_S", 0)
    client = Client(KafkaError.STALE_MEMBER_EPOCH, KafkaError.STALE_MEMBER_EPOCH)
    offsets(client).commit({KEY: 5})
    assert client.accepted == 1


def test_an_epoch_that_stays_old_is_no_fencing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program gives up its work when it is fenced, and no other member owns its partitions here."""
    monkeypatch.setattr(module, "_STALE_S", 0)
    with pytest.raises(MembershipError) as raised:
        offsets(Client(*[KafkaError.STALE_MEMBER_EPOCH] * 100)).commit({KEY: 5})
    assert not isinstance(raised.value, FencedError)
    assert consumer_error(raised.value).code() == KafkaError.STALE_MEMBER_EPOCH


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH])
def test_a_member_that_is_gone_is_fenced(code: int) -> None:
    """Its partitions have other owners."""
    with pytest.raises(FencedError, match="went on without this member"):
        offsets(Client(code)).commit({KEY: 5})


def test_a_partition_of_another_member_is_not_sent() -> None:
    """Nothing is committed then."""
    client = Client()
    with pytest.raises(NotOwnedError):
        offsets(client).commit({KEY: 5, ("t", 1): 6})
    assert client.accepted == 0
