"""The loops that take most of a plan's time: in C, or in numpy if there was no C compiler at the build."""

try:
    from assignors.planner import plan_loops_compiled as loops
except ImportError:  # built without a C compiler
    from assignors.planner import plan_loops_interpreted as loops  # type: ignore[no-redef]

claimed_places, give_best = loops.claimed_places, loops.give_best
mix_pairs, pairs_of_members = loops.mix_pairs, loops.pairs_of_members

COMPILED = loops.__name__.endswith("plan_loops_compiled")
