"""The most common step of `consume`: in C, or a step for RecordSteps if there was no C compiler at the build."""

try:
    from assignors.consumer import quick_step_compiled as quick_step
except ImportError:  # built without a C compiler
    from assignors.consumer import quick_step_interpreted as quick_step  # type: ignore[no-redef]

QuickStep, Readiness = quick_step.QuickStep, quick_step.Readiness

TAKES_RECORDS = quick_step.TAKES_RECORDS
"""Whether `QuickStep.take` ever returns records: compiled, and this release of confluent-kafka is known."""
