"""Run the schedule of a seed."""

from collections.abc import Callable
from functools import partial

from tests.simulation.actors import OTHERS, Agent, last_agent, producer
from tests.simulation.world import World


def simulate(seed: int) -> World:
    """Run the schedule of a seed; the world's `error` says which promise does not hold in it."""
    world = World(seed)
    with world.entered():
        try:
            _run(world)
        except Exception as error:  # noqa: BLE001 -- whatever fails in it, the caller names the seed
            world.error = error
    return world


def directed(body: Callable[[World], None]) -> World:
    """Run one schedule that is written down, without faults; for meetings that a drawn schedule hardly ever has."""
    world = World(0)
    world.scheduler.calm_down()
    with world.entered():
        world.scheduler.spawn("directed", partial(body, world))
        try:
            world.scheduler.run()
        except Exception as error:  # noqa: BLE001 -- whatever fails in it, the caller names the schedule
            world.error = error
    return world


def _run(world: World) -> None:
    scheduler = world.scheduler
    scheduler.spawn("producer", partial(producer, world))
    for number in range(world.agents):
        direct = scheduler.random.random() < 0.5
        agent = Agent(world, f"agent{number}", f"mem://checkpoints/agent{number}", direct=direct)
        scheduler.spawn(f"agent{number}", agent)
    for number, name in enumerate(world.others):
        scheduler.spawn(f"{name}{number}", partial(OTHERS[name], world))
    scheduler.run()
    scheduler.calm_down()
    scheduler.spawn("last agent", partial(last_agent, world))
    scheduler.run()
    world.promises.check_end({key.partition: end for key, end in world.group.ends.items()})
