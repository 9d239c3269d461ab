"""Partitions claimed row by row in a database, for jobs that work without a consumer group.

A job claims a few partitions, works, commits and disowns; who dies is followed when the lease ends. The core
(`_picking`) is pure; SQLAlchemy and a driver come with `pip install 'kafka-azimuth[sql]'`.
"""

from assignors._errors import ClaimLostError, ClaimsAwayError, ClaimsError
from assignors.scaling.claims._claims import PartitionClaims
from assignors.scaling.claims._model import Claim, Form, Lease, Standing, Visit
from assignors.scaling.claims._picking import Picking
from assignors.scaling.claims._standings import standings

__all__ = [
    "Claim",
    "ClaimLostError",
    "ClaimsAwayError",
    "ClaimsError",
    "Form",
    "Lease",
    "PartitionClaims",
    "Picking",
    "Standing",
    "Visit",
    "standings",
]
