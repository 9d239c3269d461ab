"""Plans where worker caps bind: at most `workers` members read a topic.

* `exact_small_groups`: the optimum of small groups.
* `reader_choice`: which members read a topic in larger groups.
* `local_search`: hand-overs between readers until the loads are within bounds.
* `candidate_moves`: the hand-overs one search step may choose from, with their price.
* `search_state`: what each reader holds during the search.
* `neighbourhood_search`: all partitions of a few members divided again.
* `movement_lower_bound`: what has to move in any plan.
"""
