from assignors.planner.plan_loops_interpreted import claimed_places, give_best, mix_pairs, pairs_of_members

__all__ = ["claimed_places", "give_best", "mix_pairs", "pairs_of_members"]
