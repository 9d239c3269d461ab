"""Few consumers for many topics."""

from assignors.fleet import Agent, FleetTopic, Lane, LaneChange, Lanes, View, lane_change
from assignors.fleet.lanes import lane_groups


def topics(count: int) -> frozenset[FleetTopic]:
    """Topics of two clusters."""
    return frozenset(FleetTopic(f"c{n % 2}", f"id{n}", f"t{n}", f"s{n % 2}") for n in range(count))


def test_consumers_are_bounded_whatever_the_number_of_topics() -> None:
    """Lanes x clusters, each topic in one of them."""
    found = Lanes(count=3).group(topics(500))
    assert len(found) == 6
    assert frozenset().union(*found.values()) == topics(500)


def test_the_lane_depends_on_the_topic_alone() -> None:
    """Agents that see different fleets still meet in one group."""
    few, many = Lanes().group(topics(10)), Lanes().group(topics(100))
    assert all(mine <= many[lane] for lane, mine in few.items())


def test_a_change_leaves_the_other_lanes_alone() -> None:
    """Only lanes whose topics differ are started, changed or stopped."""
    a, b, c, d = (Lane("s", n) for n in range(4))
    one, two = frozenset(list(topics(2))[:1]), topics(2)
    change = lane_change({a: one, b: one, c: one}, {a: one, b: two, d: two})
    assert change == LaneChange(start={d: two}, change={b: two}, stop=frozenset({c}))


def test_the_groups_of_a_fleet_are_told_from_others() -> None:
    """Names that begin alike, or end in something else, are no lanes of it."""
    mine = [Lane("home", number).group("ingest") for number in (0, 3, 11)]
    others = ["ingest", "ingest2.lane-0", "ingest.lane-", "ingest.lane-x", "ingest.lane-1.lane-2", "x.ingest.lane-1"]
    assert lane_groups("ingest", [*others, *mine]) == sorted(mine)
    assert lane_groups("ingest.lane-1", others) == ["ingest.lane-1.lane-2"]


def test_seats_decide_as_soon_as_every_agent_knows_how() -> None:
    """In a rolling restart all agents change together; agents of an earlier version read by the group alone."""
    seat, group = Agent("a", settings=("assignment=1",)), Agent("b", settings=("assignment=0",))
    other, old, silent = Agent("c", settings=("assignment=1",)), Agent("d", settings=("lanes=4",)), Agent("e")
    mine = Lanes(seated=True)
    assert mine.agreed(View((seat, other))).seated
    assert not any(mine.agreed(View((seat, one))).seated for one in (group, old, silent))
    assert mine.agreed(View((silent,))).seated, "a static fleet declares nothing"
    assert not Lanes().agreed(View((silent,))).seated
    assert Lanes().agreed(View((seat, other))).seated, "the view decides, not the agent's own file"


def test_sources_of_one_cluster_divide_its_lanes() -> None:
    """Two lanes are two consumers of that cluster, however many sources name it; each source has one at least."""
    lanes = Lanes(count=2, siblings={"s0": 2, "s1": 2})
    assert len(lanes.group(topics(100))) == 2
    assert len(Lanes(count=1, siblings={"s0": 2, "s1": 2}).group(topics(100))) == 2
    assert len(Lanes(count=2, siblings={"s0": 1, "s1": 1}).group(topics(100))) == 4
    for given in (lanes, Lanes(count=5, seated=True)):
        assert {*given.of("s0"), *given.of("s1")} == given.group(topics(100)).keys(), "all lanes that topics can have"
