"""The main demo: a three-zone Kafka on this machine, real flights, agents that die, and a report."""
