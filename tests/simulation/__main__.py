"""`python -m tests.simulation SEED [MUTANT]`: run one schedule and print its steps; with `FIRST-END`, run many."""

import contextlib
import sys
import time

from tests.simulation.many_schedules import all_broken
from tests.simulation.mutants import MUTANTS, mutated
from tests.simulation.schedules import simulate


def main(seed: str, mutant: str = "") -> int:
    """Run one schedule or many; 1 where a promise does not hold in one of them."""
    first, _, end = seed.partition("-")
    if first.isdecimal() and end.isdecimal() and not mutant:
        return _many(int(first), int(end))
    if not seed.isdecimal() or mutant not in {"", *MUTANTS}:
        known = sorted(MUTANTS)
        sys.stderr.write(f"need a seed, and perhaps one of the mutants {known}; or a range of seeds such as 0-1000\n")
        return 2
    with mutated(mutant) if mutant else contextlib.nullcontext():
        world = simulate(int(seed))
    for step, actor, what in world.scheduler.trace:
        sys.stdout.write(f"{step:6} {actor:<12} {what}\n")
    sys.stdout.write(f"seed {seed}: {world.error or 'every promise holds'}\n")
    return int(world.error is not None)


def _many(first: int, end: int) -> int:
    began = time.monotonic()
    broken = all_broken(first, end)
    for seed, what in broken.items():
        sys.stdout.write(f"seed {seed}: {what}\n")
    seconds = time.monotonic() - began
    sys.stdout.write(
        f"seeds {first} to {end - 1}: {len(broken)} broken, {seconds:.0f} s, {(end - first) / seconds:.0f}/s\n"
    )
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]) if len(sys.argv) > 1 else main(""))
