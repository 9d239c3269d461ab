"""Plans where worker caps bind: at most `workers` members read a topic.

* `exact_small_groups`: the optimum of small groups.
* `reader_choice`: which members read a topic in larger groups.
* `local_search`: hand-overs between readers until the loads are within their bounds.
* `candidate_moves`: the hand-overs that one step of the search chooses from.
* `search_state`: what each reader holds during the search.
* `neighbourhood_search`: everything that a few members hold, divided among them at the least cost.
* `movement_lower_bound`: how many claims move in any plan.
"""
