"""`python -m tests.simulation SEED [MUTANT]`: run one schedule and print its steps."""

import contextlib
import sys

from tests.simulation.mutants import MUTANTS, mutated
from tests.simulation.schedules import simulate


def main(seed: str, mutant: str = "") -> int:
    """Run one schedule; 1 where a promise does not hold in it."""
    if not seed.isdecimal() or mutant not in {"", *MUTANTS}:
        sys.stderr.write(f"need a seed, and perhaps one of the mutants {sorted(MUTANTS)}\n")
        return 2
    with mutated(mutant) if mutant else contextlib.nullcontext():
        world = simulate(int(seed))
    for step, actor, what in world.scheduler.trace:
        sys.stdout.write(f"{step:6} {actor:<12} {what}\n")
    sys.stdout.write(f"seed {seed}: {world.error or 'every promise holds'}\n")
    return int(world.error is not None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]) if len(sys.argv) > 1 else main(""))
