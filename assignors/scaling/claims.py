"""The former name of `assignors.claims`."""

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
