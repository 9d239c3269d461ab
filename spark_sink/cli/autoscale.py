"""`azimuth autoscale`: workers per topic from lag; a dry run without `--apply`."""

import json
import logging
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_sink.agent.stop_signal import stop_on_signals
from spark_sink.cli._option_values import AsJson, counted, given
from spark_sink.cli._process_options import Certificate, Format, Key, Token, logged, refuse_without_http
from spark_sink.monitoring.logs.line_format import LogFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assignors.scaling import Decision, ScaledTopic, ScalingSettings, Store, WorkersRecord
    from spark_sink.monitoring.live import Access, ScalingFigures

    Write = Callable[..., None]  # a line, and the topic that it is about

group = typer.Typer(
    help="Choose workers per topic from lag, in rounds, until SIGTERM; a dry run without --apply.", no_args_is_help=True
)

_log = logging.getLogger("azimuth.scaling")


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(group, name="autoscale", rich_help_panel="Workers per topic")


@group.callback(invoke_without_command=True)
def autoscale(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option(help="TOML file with all pipelines.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Publish the numbers; else only the journal is written.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Decide once, and end.")] = False,
    http: Annotated[
        str | None,
        typer.Option(
            callback=given, metavar="[HOST]:PORT", help="Serve /agents.json, metrics and probes; :8080 is local."
        ),
    ] = None,
    http_token: Token = None,
    http_certificate: Certificate = None,
    http_key: Key = None,
    log_format: Format = LogFormat.TEXT,
) -> None:
    """Choose workers per topic from lag, in rounds, until SIGTERM or Ctrl-C."""
    if context.invoked_subcommand is not None:
        return
    if config is None:
        raise typer.BadParameter("--config FILE is missing")
    refuse_without_http(http, http_token, http_certificate, http_key)
    # Kafka clients load slowly, so `--help` does not import them.
    from assignors import AssignorError
    from assignors.scaling import ScalingSettings
    from spark_sink.monitoring.live import Access, parse_address

    settings = ScalingSettings.load(config)
    address = parse_address(http) if http else None
    access = Access.load(http_token, http_certificate, http_key)
    write = _line_writer(log_format, once=once)
    with logged(log_format, settings.model_dump()):
        decided = _rounds(settings, write, (address, access), apply=apply, once=once)
        if not once:
            write("the autoscaler has ended")
        elif not decided:
            raise AssignorError(f"{config}: no topic was decided on; the log above says why")


def _rounds(
    settings: "ScalingSettings",
    write: "Write",
    http: "tuple[tuple[str, int] | None, Access]",
    *,
    apply: bool,
    once: bool,
) -> bool:
    """Decide in rounds until a signal; return whether there was a decision."""
    from assignors.scaling import (
        Evaluator,
        EvaluatorElection,
        KafkaLag,
        WorkersFeed,
        WorkersNews,
        WorkersPublisher,
        alert_hooks,
    )
    from spark_sink.monitoring.live import ScalingFigures, ScalingServer

    figures = ScalingFigures(settings.interval_s)
    store = _store(settings, apply=apply)  # checked before the workers topic is created
    workers, topic = settings.workers_client, settings.workers_topic
    news = WorkersNews(settings.news, topic) if apply and settings.news else None
    publisher = WorkersPublisher(workers, topic) if apply else None
    evaluator = Evaluator(settings, KafkaLag(settings.client), store, publisher)
    evaluator.alert(alert_hooks(settings.alerts))
    if news is not None:
        evaluator.announce(news.tell)
    stopped, decided = stop_on_signals(), False

    def after_round(made: "list[Decision]") -> None:
        nonlocal decided
        _print_round(made, apply=apply, write=write, each=not decided)
        decided |= bool(made)
        _publish_figures(figures, settings, evaluator.groups, write)
        if once:
            stopped.set()

    if not apply:
        write("dry run: decisions go to the journal and to this output; --apply publishes them")
    with ExitStack() as clients:
        address, access = http
        if address is not None:
            write(f"figures at {clients.enter_context(ScalingServer(address, figures, access)).url}")
        feed = clients.enter_context(WorkersFeed(workers, topic))

        def numbers() -> "Mapping[ScaledTopic, WorkersRecord]":
            feed.refresh(to_end=True)
            if feed.deleted and publisher is not None:
                _log.warning("workers topic %r was deleted: it is created again, without any numbers", topic)
                publisher.make()
            return feed.records

        numbers()
        evaluator.read_back(numbers)
        if apply:
            groups = {pipeline.group for pipeline in settings.pipelines.values()}
            election = clients.enter_context(EvaluatorElection(workers, topic, groups))
            election.wait()
            evaluator.elect(election.leads)
        evaluator.run(stopped, after_round)
    return decided


def _line_writer(form: LogFormat, *, once: bool) -> "Write":
    """Return what takes the lines about the rounds: of one round it is the output, of many the log, with times."""
    return _printed if once and form is LogFormat.TEXT else _logged


def _printed(text: str, topic: str | None = None) -> None:  # noqa: ARG001 -- the text names the topic
    typer.echo(text)


def _logged(text: str, topic: str | None = None) -> None:
    _log.info("%s", text, extra={"topic": topic})


@group.command()
def explain(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic whose decisions are explained.")],
    journal: Annotated[Path, typer.Option(help="File with the decisions.")] = Path("scaling.jsonl"),
    last: Annotated[int, typer.Option(help="How many.", min=1)] = 5,
    as_json: AsJson = False,
) -> None:
    """Explain the number of workers of a topic; exit code 1 if there is no decision about it."""
    from assignors.scaling import explain_entry as sentence
    from assignors.scaling import journal_entries

    found = list(journal_entries(journal, topic))[-last:]
    if as_json:
        typer.echo(json.dumps(found))
        raise typer.Exit(0 if found else 1)
    if not found:
        typer.echo(f"{journal}: no decision on topic {topic!r}")
        raise typer.Exit(1)
    for line in found:
        typer.echo(sentence(line))


def _store(settings: "ScalingSettings", *, apply: bool) -> "Store":
    """Open the store; a dry run must not write into the window and the states of the process with `--apply`."""
    from assignors.scaling import MemoryStore, RedisStore

    return MemoryStore() if settings.store == "memory" or not apply else RedisStore(settings.store)


def _publish_figures(
    figures: "ScalingFigures",
    settings: "ScalingSettings",
    made: "Mapping[str, Sequence[Decision]]",
    write: "Write" = _printed,
) -> None:
    """Publish the figures of a round, and the number of agents of each group that was observed as a whole."""
    from assignors.scaling import AgentsSettings, agents_needed, demand, measured_agent_rate
    from spark_sink.monitoring.live import TopicFigures

    topics = [
        TopicFigures(group, one.topic, one.workers, one.view.lag_total) for group, mine in made.items() for one in mine
    ]
    figures.round(topics, complete=len(made) == len(settings.groups))
    for group, mine in made.items():
        if not mine:
            continue  # no topic was found, so the demand is not known
        known = settings.agents.get(group, AgentsSettings())
        before = figures.present(group)
        needed = agents_needed(demand(mine), known, before, measured_agent_rate(mine))
        figures.needs(group, needed.agents, needed.reason)
        if needed.agents != before:
            write(f"{group}: {counted(needed.agents, 'agent')} needed: {needed.reason}")


def _print_round(made: "list[Decision]", *, apply: bool, write: "Write" = _printed, each: bool = True) -> None:
    """Print the decisions of a round; topics that keep their workers `each` on its own, or all in one line."""
    from assignors.scaling import abbreviated

    silent = [one for one in made if one.workers == one.before and one.view.never_committed]
    kept = [one for one in made if one.workers == one.before and not one.view.never_committed]
    if silent:
        names = abbreviated([one.topic for one in silent])
        write(f"workers kept, as the group has never committed: {len(silent)} of {len(made)} topics ({names})")
    for one in made:
        if one.workers != one.before:
            number = counted(one.workers, "worker")
            text = f"{'' if apply else 'dry run: '}{one.topic}: {one.before} -> {number}: {one.reason}"
            write(text, one.topic)
        elif each and not one.view.never_committed:
            write(f"{one.topic}: {counted(one.workers, 'worker')} kept: {one.reason}", one.topic)
    if kept and not each:
        write(f"workers kept: {len(kept)} of {len(made)} topics; `azimuth autoscale explain TOPIC` has the reasons")
