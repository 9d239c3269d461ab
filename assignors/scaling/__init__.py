"""How many workers a topic needs: lag in, a number and its reason out."""

from assignors.scaling._baselines import DS2, Keda, Numaflow, Static, Thresholds
from assignors.scaling._capacity import Capacity
from assignors.scaling._decision import Decision, Scaler, decide
from assignors.scaling._gate import GateSettings, PartitionState, View
from assignors.scaling._limits import Bounds, Confirmed, CoolDown, DownWindow, Limit, Step, UsablePartitions
from assignors.scaling._observation import NEVER, UNKNOWN, Observation, Window, window
from assignors.scaling._policy import Policy, Proposal, State
from assignors.scaling._workers_topic import ScaledTopic, WorkersRecord

__all__ = [
    "DS2",
    "NEVER",
    "UNKNOWN",
    "Bounds",
    "Capacity",
    "Confirmed",
    "CoolDown",
    "Decision",
    "DownWindow",
    "GateSettings",
    "Keda",
    "Limit",
    "Numaflow",
    "Observation",
    "PartitionState",
    "Policy",
    "Proposal",
    "ScaledTopic",
    "Scaler",
    "State",
    "Static",
    "Step",
    "Thresholds",
    "UsablePartitions",
    "View",
    "Window",
    "WorkersRecord",
    "decide",
    "window",
]
