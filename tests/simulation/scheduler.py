"""Actors that take turns: one runs at a time, and the scheduler decides at every yield point which one goes on.

Each actor is a greenlet, and all are in one thread, because a thread waits for the processor at each change. The actor
that reaches a yield point draws from the seed whether a fault happens there, and which actor runs next. So a seed
stands for one schedule, and the same seed gives the same steps again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

_STUCK = 8_000  # steps after which a schedule counts as one that never ends


class Crash(BaseException):
    """The process ends here, and its memory is lost."""


class BrokenPromiseError(AssertionError):
    """A promise does not hold after this step."""


@dataclass(eq=False)
class Actor:
    """One process.

    Attributes:
        name: for the trace.
        memory: what the modules of this process keep; lost in a crash.
        wakes: the step before which it does not run: it is paused.
        superseded: another process was started in its place while it was paused.
        stack: where it stands in its code.
    """

    name: str
    memory: dict[str, Any] = field(default_factory=dict)
    wakes: int = 0
    superseded: bool = False
    stack: greenlet | None = None


class Scheduler:
    """Runs actors from one seed.

    Args:
        seed: of every draw.
        fault_rate: how likely a fault is at a yield point.
        stay: how likely the running actor goes on.
        calm_after: the step from which no fault is drawn.
    """

    def __init__(self, seed: int, *, fault_rate: float, stay: float, calm_after: int) -> None:
        self.random = Random(seed)
        self.step = 0
        self.now = 1_000_000.0
        self.trace: list[tuple[int, str, str]] = []
        self.broken: BaseException | None = None
        self.on_pause: Callable[[Actor], None] = lambda _: None
        self._fault_rate, self._stay, self._calm_after = fault_rate, stay, calm_after
        self._actors: list[Actor] = []
        self._current: Actor | None = None
        self._caller = getcurrent()  # an actor that ends returns to it

    @property
    def current(self) -> Actor:
        """The actor that runs."""
        assert self._current is not None
        return self._current

    @property
    def calm(self) -> bool:
        """Whether faults are over."""
        return self.step >= self._calm_after

    def calm_down(self) -> None:
        """End the faults now."""
        self._calm_after = 0

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append((self.step, self._current.name if self._current else "-", what))

    def spawn(self, name: str, body: Callable[[], None]) -> Actor:
        """Add an actor; it runs when its turn comes."""
        actor = Actor(name)
        actor.stack = greenlet(partial(self._live, actor, body), parent=self._caller)
        self._actors.append(actor)
        return actor

    def run(self) -> None:
        """Run all actors to their end.

        Raises:
            BrokenPromiseError: a promise does not hold.
        """
        while self._actors:  # each time one of them has ended
            self._pass_on(self._choose())
        self._current = None
        if self.broken is not None:
            raise self.broken

    def point(self, what: str, *faults: str) -> str:
        """A yield point: other actors may run here, and one of the faults may happen.

        Args:
            what: is about to be done.
            faults: that the caller knows how to bring about. `crash` and `pause` are possible everywhere.

        Returns:
            The fault; empty for none.

        Raises:
            Crash: the process ends before the step.
        """
        me = self.current
        if self.broken is not None:
            raise Crash
        self.step += 1
        if self.step > _STUCK:
            raise BrokenPromiseError(f"no end after {_STUCK} steps")
        draw = self.random.random
        fault = ""
        if self.step < self._calm_after and draw() < self._fault_rate:
            fault = self.random.choice(("crash", "pause", *faults))
        self.trace.append((self.step, me.name, f"{what} [{fault}]" if fault else what))
        if fault == "crash":
            raise Crash
        if fault == "pause":
            me.wakes = self.step + self.random.randint(10, 160)
            self.on_pause(me)
            fault = ""
        if me.wakes > self.step or draw() >= self._stay:
            self._switch(me)
        return fault

    def rest(self, what: str, least: int, most: int) -> None:
        """Let the others go on for some steps."""
        self.current.wakes = self.step + self.random.randint(least, most)
        self.point(what)

    def sleep(self, seconds: float) -> None:
        """Time passes, for everyone."""
        self.now += seconds
        self.point("sleep")

    def clock(self) -> float:
        """Read the clock: a yield point too, and now and then it has jumped."""
        if self.point("read the clock", "jump") == "jump":
            self.now += self.random.choice((-5.0, 0.0, 30.0))
        self.now += 0.05
        return self.now

    def _live(self, actor: Actor, body: Callable[[], None]) -> None:
        try:
            if self.broken is None:
                body()
        except Crash:
            self.note("ended")
        except BaseException as error:  # noqa: BLE001 -- whatever it is, the schedule has failed with it
            self.broken = self.broken or error
        self._actors.remove(actor)

    def _choose(self) -> Actor:
        ready = [one for one in self._actors if one.wakes <= self.step] if self.broken is None else self._actors
        if not ready:
            first = min(self._actors, key=lambda one: one.wakes)
            self.step = first.wakes
            return first
        return ready[int(self.random.random() * len(ready))]

    def _switch(self, me: Actor) -> None:
        chosen = self._choose()
        if chosen is not me:
            self._pass_on(chosen)
            if self.broken is not None:
                raise Crash

    def _pass_on(self, actor: Actor) -> None:
        self._current = actor
        assert actor.stack is not None
        actor.stack.switch()
