"""How many workers a topic needs: lag in, a number and its reason out."""

from assignors.scaling._workers_topic import ScaledTopic, WorkersRecord

__all__ = ["ScaledTopic", "WorkersRecord"]
