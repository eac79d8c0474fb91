"""Lanes that run passes side by side, and help each other when there is something left to do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event

from tests.passes import Environment, Pass, Tell, run, show
from tests.requirements import required
from tests.services.servers import NotHere
from tests.sharing import NUMBER, untaken

WORTH_A_PROCESS = 12
"""How many files have to be left for another process to begin: it collects as long as some of them take."""

Lane = Callable[[Tell], list[Pass]]
"""Does one thing after the other, telling what is printed."""


@dataclass(frozen=True)
class Shared:
    """A pass that several processes may share, what runs while one does, and where they tell what is taken."""

    name: str
    arguments: list[str]
    servers: Callable[[], AbstractContextManager[Environment]]
    folder: Path
    ended: Event = field(default_factory=Event)

    def begin(self, tell: Tell, *, more: bool = False) -> Pass:
        """Run what no other process has taken, with a database and a broker of its own."""
        try:
            return self._begin(tell, more=more)
        finally:
            self.ended.set()

    def wait(self) -> None:
        """Wait until a process has said how many files there are, or has ended without."""
        while not (self.ended.is_set() or (self.folder / NUMBER).exists()):
            self.ended.wait(0.1)

    def _begin(self, tell: Tell, *, more: bool) -> Pass:
        # In one word, or pytest takes the folder for one with tests when it looks for its configuration.
        sharing = ["-p", "tests.sharing", f"--shared-in={self.folder}"]
        try:
            with self.servers() as env:
                return run(self.name, [*sharing, *self.arguments], env, tell, more=more)
        except NotHere as error:
            code = 1 if {"postgres", "redis"} & required() else 0
            return Pass(self.name, code=code, summary="not run", skipped=[f"The whole pass: {error}"])


def lanes(one: Shared, other: Shared, *, processors: int) -> list[Lane]:
    """Return what to do side by side: each pass, and help for both."""
    if processors == 1:
        # Tests have limits of time, and each would have a third of a processor.
        return [lambda tell: [one.begin(tell), other.begin(tell)]]
    return [
        lambda tell: [one.begin(tell), *helped([other], tell)],
        lambda tell: [other.begin(tell), *helped([one], tell)],
        lambda tell: helped([one, other], tell),
    ]


def helped(begun: list[Shared], tell: Tell) -> list[Pass]:
    """Run what nobody has begun of passes that others began, where that is worth a process."""
    done = []
    for each in begun:
        each.wait()
        if untaken(each.folder) >= WORTH_A_PROCESS:
            done.append(each.begin(tell, more=True))
    return done


def side_by_side(lanes: list[Lane]) -> list[Pass]:
    """Run lanes at the same time; show what the first tells at once, and the others' when it is over."""
    first, *others = [(each, SimpleQueue[str | None]()) for each in lanes]
    with ThreadPoolExecutor(len(lanes)) as threads:
        running = [threads.submit(_beside, *each) for each in others]
        done = first[0](show)
        for _, kept in others:
            for text in iter(kept.get, None):
                show(text)
        return [*done, *(each for other in running for each in other.result())]


def _beside(work: Lane, kept: SimpleQueue[str | None]) -> list[Pass]:
    try:
        return work(kept.put)
    finally:
        kept.put(None)
