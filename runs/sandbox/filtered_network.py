"""Namespaces around a sandbox: one with limits of its user, and one with a network filtered by nftables.

slirp4netns connects the network. A holder process owns its namespaces; the sandbox gets a user namespace below
them, so nothing in it can change the network.

Linux counts inotify instances and namespaces per user, so one trial could take all of the worker's. A user
namespace has limits of its own for all that runs in it and below; a command has no rights over them. Making one
takes milliseconds, so later commands reuse it.
"""

from __future__ import annotations

import os
import select
import shutil
import stat
import subprocess
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runs.errors import ProviderError
from runs.sandbox.egress import (
    DEVICE,
    GATEWAY6,
    NETWORK,
    OWN6,
    Allowed,
    Opening,
    list_openings,
    resolver_settings,
    worker_addresses,
    write_ruleset,
)
from runs.sandbox.helper_processes import HELPER_ENV, memory_file

INOTIFY_INSTANCES = 16
NAMESPACES = 8
"""User namespaces below that of a command that may create some."""
_PATIENCE = 20.0
# As the namespace's owner, with the capabilities that only its first process has.
_HOLD = ("unshare", "--user", "--map-current-user", "--keep-caps", "--", "/bin/sh", "-c")

MOST_FREE = 8
"""Namespaces that are kept for later commands, of each kind."""

_free: dict[int, deque[tuple[float, int]]] = defaultdict(deque)
"""Namespaces that no command uses, by how many may be below: since when, and their descriptors."""


def setting_limits(namespaces: int) -> str:
    """Return a shell's commands that set the limits of the user namespace that they run in."""
    return (
        f"echo {INOTIFY_INSTANCES} > /proc/sys/user/max_inotify_instances && "
        f"echo {namespaces} > /proc/sys/user/max_user_namespaces"
    )


@contextmanager
def limited_namespace(program: str, namespaces: int) -> Iterator[int | None]:
    """Lend a namespace's descriptor for one command of bubblewrap; None where the kernel or bubblewrap doesn't let it.

    `namespaces` is how many user namespaces the command and its children may create.
    """
    descriptor = None
    if not namespaces_problem(program):
        with suppress(OSError):
            descriptor = _take(namespaces)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            free = _free[namespaces]
            free.append((time.monotonic(), descriptor))
            if len(free) > MOST_FREE:
                with suppress(IndexError):
                    os.close(free.popleft()[1])


@cache
def namespaces_problem(program: str) -> str:
    """Return why bubblewrap's commands can't be limited here, without a full stop; empty if they can."""
    try:
        if Path(program).stat().st_mode & stat.S_ISUID:
            return "bubblewrap is setuid"
        _free[NAMESPACES].append((0.0, _make(NAMESPACES)))
    except OSError as error:
        return f"a namespace for them can't be made: {error}".rstrip(".")
    return ""


def _take(namespaces: int) -> int:
    try:
        # Atomic, because commands start in several threads.
        since, descriptor = _free[namespaces].popleft()
    except IndexError:
        return _make(namespaces)
    # The kernel takes back what a killed command had in a namespace a moment later.
    if time.monotonic() - since >= 0.5:
        return descriptor
    _free[namespaces].appendleft((since, descriptor))
    return _make(namespaces)


def _make(namespaces: int) -> int:
    """Return the descriptor of a new namespace, which lives as long as that. Raises `OSError`."""
    script = f"{setting_limits(namespaces)} && echo ready && read -r word"
    holder = subprocess.Popen(
        [*_HOLD, script],
        cwd="/",
        env=HELPER_ENV,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with holder:
        try:
            return _open_namespace(holder)
        finally:
            holder.kill()


def _open_namespace(holder: subprocess.Popen[bytes]) -> int:
    answer = b""
    if holder.stdout and select.select([holder.stdout], [], [], _PATIENCE)[0]:
        answer = holder.stdout.readline()
    if answer != b"ready\n":
        raise OSError(answer.decode("utf-8", "replace").strip() or "no answer")
    return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


PACKAGES = "slirp4netns, nftables, iproute2 and util-linux"
_RESOLVER = Path("/etc/resolv.conf")
# Load the rules before adding the device. Without IPv6 in the kernel the sandbox has none either.
_SCRIPT = f"""
set -e
# Where /proc/sys can't be written, `doctor` says so. bubblewrap takes one namespace itself.
({setting_limits(NAMESPACES + 1)}) 2> /dev/null || true
ip link set lo up
nft -f "/proc/self/fd/$1"
echo ready
read -r word
if [ -e /proc/sys/net/ipv6/conf/{DEVICE} ]; then
  # On a busy machine the forwarder's own announcement has set a route already.
  ip -6 address replace {OWN6}/64 dev {DEVICE} nodad
  ip -6 route replace default via {GATEWAY6} dev {DEVICE}
fi
[ "$word" != loopback ] || echo 1 > /proc/sys/net/ipv4/conf/{DEVICE}/route_localnet
echo ready
read -r word
"""


@dataclass(frozen=True)
class FilteredNetwork:
    """A network to start a command in."""

    enter: tuple[str, ...]
    """Command prefix that enters it; inside, this user is root until bubblewrap maps it back."""
    resolver: str
    """Content of /etc/resolv.conf; empty if the worker has none."""


@contextmanager
def filtered_network(allowed: tuple[Allowed, ...]) -> Iterator[FilteredNetwork]:
    """Create a network and remove it at exit. Raises `ProviderError` on failure."""
    opened = list_openings(allowed)
    with ExitStack() as stack:
        try:
            holder = _hold_namespaces(stack, write_ruleset(opened, worker_addresses()))
            _forward(stack, holder.pid, opened)
            loopback = any(each.asked.is_loopback for each in opened)
            _send(holder, "loopback" if loopback else "go")
        except OSError as error:
            raise ProviderError(
                f"The sandbox's network can't be created: {error}. The worker needs {PACKAGES}, /dev/net/tun and "
                "a kernel with nf_tables."
            ) from error
        words = ("nsenter", "--preserve-credentials", f"--user=/proc/{holder.pid}/ns/user")
        resolver = resolver_settings(_RESOLVER.read_text()) if _RESOLVER.is_file() else ""
        yield FilteredNetwork((*words, f"--net=/proc/{holder.pid}/ns/net", "--"), resolver)


@cache
def filtering_problem() -> str:
    """Return why networks can't be filtered here, without a full stop; empty if they can."""
    if missing := [
        name
        for name in ("slirp4netns", "nft", "ip", "unshare", "nsenter")
        if not shutil.which(name, path=HELPER_ENV["PATH"])
    ]:
        return f"the worker has no {', '.join(missing)}"
    try:
        with filtered_network(()) as network:
            ended = subprocess.run([*network.enter, "true"], env=HELPER_ENV, cwd="/", check=False, timeout=10)
            return "" if ended.returncode == 0 else "its namespaces cannot be entered"
    except ProviderError as error:
        return f"a trial of it failed: {error.__cause__}".rstrip(".")


def _hold_namespaces(stack: ExitStack, rules: str) -> subprocess.Popen[bytes]:
    with memory_file(rules.encode()) as file:
        number = file.fileno()
        holder = subprocess.Popen(
            [
                "unshare",
                "--user",
                "--map-root-user",
                "--net",
                "--",
                "/bin/sh",
                "-c",
                _SCRIPT,
                "sh",
                str(number),
            ],
            cwd="/",
            env=HELPER_ENV,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(number,),
            start_new_session=True,
        )
    stack.callback(_end, holder)
    _expect_ready(holder)
    return holder


def _forward(stack: ExitStack, holder: int, opened: tuple[Opening, ...]) -> None:
    """Start the forwarder; it exits when its pipe to this process closes."""
    ready, ready_inside = os.pipe()
    stack.callback(os.close, ready)
    alive_inside, alive = os.pipe()
    stack.callback(os.close, alive)
    words = ["--configure", "--mtu=65520", f"--cidr={NETWORK}", "--enable-ipv6", "--enable-sandbox"]
    words += ["--enable-seccomp", f"--ready-fd={ready_inside}", f"--exit-fd={alive_inside}"]
    if not any(each.asked.is_loopback for each in opened):
        words.append("--disable-host-loopback")
    try:
        forwarder = subprocess.Popen(
            ["slirp4netns", *words, f"--userns-path=/proc/{holder}/ns/user", str(holder), DEVICE],
            cwd="/",
            env=HELPER_ENV,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(ready_inside, alive_inside),
            start_new_session=True,
        )
    finally:
        os.close(ready_inside)
        os.close(alive_inside)
    stack.callback(_end, forwarder)
    select.select([ready], [], [], _PATIENCE)
    if os.read(ready, 1) != b"1":
        raise OSError(f"slirp4netns said: {_rest(forwarder)}")


def _send(holder: subprocess.Popen[bytes], word: str) -> None:
    if holder.stdin is None:
        raise TypeError("no pipe")
    holder.stdin.write(f"{word}\n".encode())
    holder.stdin.flush()
    _expect_ready(holder)


def _expect_ready(holder: subprocess.Popen[bytes]) -> None:
    answer = (
        b""
        if holder.stdout is None or not select.select([holder.stdout], [], [], _PATIENCE)[0]
        else holder.stdout.readline()
    )
    if answer != b"ready\n":
        raise OSError(f"{answer.decode('utf-8', 'replace').strip()} {_rest(holder)}".strip() or "no answer")


def _rest(process: subprocess.Popen[bytes]) -> str:
    """Return a failed process's output on one line."""
    process.kill()
    answer, _ = process.communicate()
    return " ".join(answer.decode("utf-8", "replace").split())[-300:]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
