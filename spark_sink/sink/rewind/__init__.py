"""`azimuth rewind`: sets positions back to the rows of a table that was restored or rolled back.

* `delta_rewind`: of a Delta table.
* `iceberg_rewind`: of an Iceberg table.
* `set_back_positions`: the positions that a rewind sets back. Pure.
* `rewound_rows`: rows of an Iceberg table from before an earlier rewind. Pure.
* `positions_of_restored_version`: the positions that belong to the version that a RESTORE brought back.
* `rewind_commit`: the commits and the mark of a rewind.
* `bad_records_after_quarantine_restore`: puts back bad records that a RESTORE of the quarantine removed.
* `bad_records_after_table_restore`: brings bad records back that an earlier rewind removed.
"""
