"""Keep child processes running, and stop them all at its end.

Linux ends children whose supervisor is killed (PR_SET_PDEATHSIG). Elsewhere they are stopped by
the supervisor's own signal handlers only.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

PR_SET_PDEATHSIG = 1
LONGEST_PAUSE = 30.0


def tie_to(parent: int) -> None:
    """Let the kernel end this process when its parent, the process with this id, dies; for `preexec_fn`."""
    if sys.platform == "linux":
        # The parent's handler would take the signal, and be gone when the program starts.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            # It died before.
            os._exit(1)


@dataclass
class SupervisedProcess:
    """One child process: what to start, and how long it may take to stop."""

    name: str
    argv: Sequence[str]
    log: Path
    folder: Path
    """Where it starts: Python finds its modules there."""
    grace_seconds: float = 20.0
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    started: float = 0.0
    next_start: float = 0.0

    def start(self) -> None:
        """Start the process in its own group, so that Ctrl-C reaches only the supervisor."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.env},
                preexec_fn=partial(tie_to, os.getpid()),
                process_group=0,
            )
        self.started = time.monotonic()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def note_exit(self) -> float:
        """Plan the next start after an exit; return the pause in seconds."""
        # Uptime after which a service's failures are reset.
        self.failures = 0 if time.monotonic() - self.started > 30.0 else self.failures + 1
        pause = min(LONGEST_PAUSE, 0.5 * 2.0**self.failures)
        self.next_start = time.monotonic() + pause
        self.process = None
        return pause

    def stop(self) -> None:
        """Ask the process to end, and end its group when it does not."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(self.grace_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Supervisor:
    """Starts services in order, restarts those that end, stops them in reverse order."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.services: list[SupervisedProcess] = []
        self.stopping = False
        self._say = say
        self._wake, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _ask_to_stop(self, *_: object) -> None:
        self.stopping = True

    def add(self, service: SupervisedProcess) -> None:
        """Start a service and keep it running from now on."""
        service.start()
        self.services.append(service)

    def watch(self, seconds: float) -> None:
        """Monitor services for up to `seconds`, or until one changes state."""
        if select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 4096)
        for service in self.services:
            if self.stopping:
                return
            if service.process is not None and not service.running:
                code = service.process.returncode
                pause = service.note_exit()
                self._say(f"{service.name} ended with exit code {code}; it starts again in {pause:.1f} s.")
            if service.process is None and time.monotonic() >= service.next_start:
                service.start()

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Watch the services until `ready` returns True; return False on timeout or a request to stop."""
        end = time.monotonic() + seconds
        while not self.stopping and time.monotonic() < end:
            if ready():
                return True
            self.watch(0.1)
        return False

    def stop(self) -> None:
        """Stop everything, the first that was started last."""
        for service in reversed(self.services):
            service.stop()
