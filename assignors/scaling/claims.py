"""`assignors.claims` under the name that it had inside this package."""

from assignors.claims import (
    Claim,
    ClaimLostError,
    ClaimsAwayError,
    ClaimsError,
    Form,
    Lease,
    PartitionClaims,
    Picking,
    Standing,
    Visit,
    standings,
)

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
