"""Plans where worker caps bind: at most `workers` members read a topic.

* `exact_small_groups`: the optimum of small groups.
* `reader_choice`: chooses the readers of a topic in larger groups.
* `local_search`: hand-overs between readers until the loads are within their bounds.
* `hand_over_chains`: chains of hand-overs where few partitions are outside the bounds, as after a join.
* `candidate_moves`: the hand-overs from which one step of the search chooses.
* `search_state`: the partitions of each reader during the search.
* `neighbourhood_search`: divides all partitions of a few members among them at the lowest cost.
* `fewer_moves`: a faster form of it, for loads within their bounds and without racks.
* `reachable_loads`: the cheapest division of a few members' topics within the bounds of their loads.
* `pool_divisions`: the ways to divide one topic among a few members.
* `fairest_capped_loads`: the most even loads that the caps can allow; a plan that has them needs no search.
* `movement_lower_bound`: a lower bound of the claims that move in any plan.
* `newcomer_bound`: another lower bound: what owners of whole pieces lose to a member that joins.
* `whole_topic_bound`: a higher bound where each topic has one worker; computed only when it is read.
"""
