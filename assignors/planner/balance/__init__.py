"""Plans under different subscriptions, racks and large groups.

* `constrained_plan`: the plan: best loads, then counts by kind, then partitions.
* `fairest_loads`: the lexicographically best loads.
* `min_cost_flow`: the counts with the fewest partitions off rack, then moved.
* `cheapest_lines`: the cheapest way to each kind and each member, for `min_cost_flow`.
* `large_groups`: plans topic by topic, for groups too large for exact counts.
"""
