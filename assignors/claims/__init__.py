"""Partitions claimed row by row in a database, for jobs that work without a consumer group.

A job claims a few partitions, works, commits and disowns. When a job dies, others take its partitions once the lease
ends. SQLAlchemy and a driver come with `pip install 'kafka-azimuth[sql]'`.

* `partition_claims`: `PartitionClaims`, the calls of a job.
* `claim_values`: the values of claims.
* `due_times`: decides when a partition is due. Pure.
* `claiming_sql_by_dialect`: the statements that claim rows, for each database.
* `claims_table_columns`: the table and the database's clock.
* `column_limits`: limits of the values in a row.
* `database`: connections and named errors.
* `silent_database`: ends connections to a database that gives no answer.
* `table_check`: checks the database before a start.
* `claim_status`: the status of partitions, for readers.
"""

import typing

from assignors import lazy_imports
from assignors.errors import ClaimLostError, ClaimsAwayError, ClaimsError

if typing.TYPE_CHECKING:
    from assignors.claims.claim_status import standings
    from assignors.claims.claim_values import Claim, Form, Lease, Standing, Visit
    from assignors.claims.due_times import Picking
    from assignors.claims.partition_claims import PartitionClaims
    from assignors.claims.silent_database import end_silent_connections
    from assignors.claims.table_check import check_claims
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "claim_status": ["standings"],
            "claim_values": ["Claim", "Form", "Lease", "Standing", "Visit"],
            "due_times": ["Picking"],
            "partition_claims": ["PartitionClaims"],
            "silent_database": ["end_silent_connections"],
            "table_check": ["check_claims"],
        },
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
    "check_claims",
    "end_silent_connections",
    "standings",
]
