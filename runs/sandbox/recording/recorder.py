"""Write a JSON line for every execution of the tool below a filter's listener.

Run as a separate program, `python -IS recorder.py SOCKET`. Each message on the socket asks for a recorder, which a fork
of this program becomes, because starting Python takes longer than many a trial. With the message come three descriptors:
the socket over which the launcher sends the listener, the file for the lines, and a pipe that is open as long as the
recorder lives. The message is JSON with `name`, `places`, `by_name`, `workspace` as the host sees it, `inside` as the
sandbox does, `writable` folders, the `sandbox` program's name and the worker's number. The answer is the fork's number.

When a process asks to execute a program, the recorder attaches to it and lets it go on; at the stop right after the exec
it reads path and arguments from the new image, which nobody in the sandbox can change any more, and lets go of all that
is not the tool. The tool stays attached, at full speed, so that its end is known.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, NamedTuple

# Run with -I, the program finds only the standard library.
sys.path.insert(0, os.path.abspath(__file__).rsplit("/runs/", 1)[0])

from runs.sandbox.recording.recognition import (
    MOST_PARENTS,
    WantedProgram,
    describe_process,
    escape_bytes,
    executed_path,
    image_of,
    libc,
    read_arguments,
    read_link,
    read_status,
)

_RECEIVE, _SEND, _CONTINUE_FLAG = 0xC0502100, 0xC0182101, 1
_SEIZE, _CONT, _LISTEN, _DETACH, _GET_MESSAGE = 0x4206, 7, 0x4208, 17, 0x4201
_TRACE_EXEC, _EVENT_EXEC, _EVENT_STOP, _WALL = 1 << 4, 4, 128, 0x40000000
_PIDFD_GET_INFO, _EXIT_KNOWN = 0xC040FF0B, 8
_ROOM_FOR_LAST_LINE = 64
_ENDED = ("", b"")
"""The image of a process that has ended."""
MOST_CALLS = 200_000
LARGEST_SETTINGS = 1 << 16
MOST_KNOWN_FILES = 200_000
_MOST_ANCESTORS = 1_000

libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class AskedExecution(NamedTuple):
    """A process that asked to execute a program."""

    began: float
    asker: dict[str, Any] | None


class Untraced(NamedTuple):
    """A process that has a tracer already: nothing stops it after its exec."""

    pid: int
    asked: AskedExecution
    image: tuple[str, bytes]
    """What it was when it asked."""


class Recorder:
    """Answers questions and follows the tool's processes."""

    def __init__(self, settings: dict[str, Any], output: int) -> None:
        self.tool = WantedProgram(settings["name"], settings["places"], by_name=settings["by_name"])
        self.worker = settings["worker"]
        self.sandbox = settings["sandbox"]
        """The program around the agent's first process."""
        self.writable = tuple(settings["writable"])
        self.known = _known_files(settings["workspace"], settings["inside"])
        self.output = output
        self.room = settings["most_bytes"] - _ROOM_FOR_LAST_LINE
        """Bytes that may still be written."""
        self.poll = select.poll()
        self.asked: dict[int, AskedExecution] = {}
        self.live: dict[int, dict[str, Any]] = {}
        self.first: dict[int, int] = {}
        """The first process of each live call's sandbox, with whose end the kernel kills all others."""
        self.pidfds: dict[int, int] = {}
        self.untraced: dict[int, Untraced] = {}
        self.count = self.lost = 0
        self.is_told_to_end = False

    def run(self, listener: int) -> None:
        """Answer until nobody with the filter is left."""
        wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self.tell_to_end)
        for descriptor in (listener, wake):
            self.poll.register(descriptor, select.POLLIN)
        is_open = True
        while (is_open or self.live) and not self.is_told_to_end:
            for descriptor, event in self.poll.poll(self.patience()):
                if descriptor == wake:
                    os.read(wake, 4096)
                elif descriptor == listener:
                    if event & select.POLLIN:
                        self.answer(listener)
                    else:
                        self.poll.unregister(listener)
                        is_open = False
                elif descriptor in self.pidfds:
                    self.end_by_pidfd(descriptor)
            self.reap()
        self.look_at_untraced()
        for pid in [*self.live]:
            self.ended(pid, None, time.time())

    def patience(self) -> int:
        """Return how many milliseconds to wait: nothing reports when an untraced process executes its program."""
        if not self.untraced:
            return 1000
        latest = max(each.asked.began for each in self.untraced.values())
        # Seconds in which a process without us as its tracer is watched most closely.
        return 1 if time.time() - latest < 10.0 else 50

    def tell_to_end(self, *_: Any) -> None:
        """End although processes are left: they escaped from the command, which has ended."""
        self.is_told_to_end = True

    def answer(self, listener: int) -> None:
        """Attach to the process that asks, and let it go on."""
        question = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, question, True)
        except OSError:
            return  # it was killed meanwhile
        ident, pid = struct.unpack_from("QI", question)
        is_attached = libc.ptrace(_SEIZE, pid, None, _TRACE_EXEC) == 0
        is_attached |= pid in self.asked or pid in self.live
        asked = AskedExecution(time.time(), self.described(pid))
        if is_attached:
            self.asked[pid] = asked
        else:
            self.watch_untraced(pid, asked)
        with contextlib.suppress(OSError):  # a signal took the question back
            fcntl.ioctl(listener, _SEND, struct.pack("QqiI", ident, 0, 0, _CONTINUE_FLAG))

    def watch_untraced(self, pid: int, asked: AskedExecution) -> None:
        """Note a process that asked and has another tracer. What it asked for before and didn't become has failed."""
        self.look_at_untraced()
        with contextlib.suppress(OSError):
            pid = read_status(pid, "Tgid")
        self.untraced[pid] = Untraced(pid, asked, image_of(pid))
        if pid not in self.pidfds.values():
            # Without one, its end is seen a moment later.
            with contextlib.suppress(OSError):
                descriptor = os.pidfd_open(pid)
                self.pidfds[descriptor] = pid
                self.poll.register(descriptor, select.POLLIN)

    def described(self, pid: int) -> dict[str, Any] | None:
        try:
            return describe_process(pid, self.writable, self.known)
        except Exception:
            # Broad because the recorder must survive whatever a process is.
            return None

    def reap(self) -> None:
        """Handle the stops and ends of attached processes."""
        self.look_at_untraced()
        while True:
            # Before a parent can hear of an end: the agent's own comes later.
            now = time.time()
            try:
                pid, state = os.waitpid(-1, os.WNOHANG | _WALL)
            except ChildProcessError:
                return
            if not pid:
                return
            if os.WIFSTOPPED(state):
                self.stopped(pid, os.WSTOPSIG(state), state >> 16)
            else:
                self.asked.pop(pid, None)
                self.ended(pid, os.waitstatus_to_exitcode(state), now)

    def look_at_untraced(self) -> None:
        """Look at processes that have executed their program. What ended before is an execution that was not seen."""
        for untraced in [*self.untraced.values()]:
            image, lost = image_of(untraced.pid), self.lost
            if image == untraced.image != _ENDED:
                continue
            self.look(untraced.pid, untraced.asked)
            if self.lost > lost and image_of(untraced.pid) != _ENDED:
                # Amid an exec the program is the new one, and its arguments aren't there yet.
                self.lost = lost
            else:
                del self.untraced[untraced.pid]

    def stopped(self, pid: int, number: int, event: int) -> None:
        stays = True
        if event == _EVENT_EXEC:
            former = ctypes.c_ulong()
            # The thread that called execve; the process has the number of its leader now.
            libc.ptrace(_GET_MESSAGE, pid, None, ctypes.addressof(former))
            stays = self.look(pid, self.asked.pop(former.value, AskedExecution(time.time(), None)))
        request = (
            _DETACH
            if not stays
            else _LISTEN
            if event == _EVENT_STOP
            and number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
            else _CONT
        )
        libc.ptrace(request, pid, None, 0 if event else number)

    def look(self, pid: int, asked: AskedExecution) -> bool:
        """Look at a process right after its exec; return whether it is a call of the tool."""
        if pid in self.live:  # the tool executes another program
            return True
        try:
            path, argv, exe, cwd = (
                executed_path(pid),
                read_arguments(pid),
                read_link(pid, "exe"),
                read_link(pid, "cwd"),
            )
            how = self.tool.matches(pid, path, argv, exe, cwd)
            if not how:
                return False
            parents, within, first = self.parents(pid)
        except Exception:
            # Broad because the recorder must survive whatever a process is.
            self.lost += 1
            return False
        if self.count >= MOST_CALLS:
            self.lost += 1
            return False
        self.count += 1
        self.first[pid] = first
        self.live[pid] = {
            "n": self.count,
            "how": how,
            "path": path,
            # The kernel puts the interpreter and its options before a script's path.
            "argv": argv[argv.index(path) :] if how in ("file", "copy", "name") and path in argv else argv,
            "start": asked.began,
            "cwd": cwd,
            "asker": asked.asker,
            "parents": parents,
            "within": within,
        }
        return True

    def parents(self, pid: int) -> tuple[list[dict[str, Any]], int | None, int]:
        """Return the ancestors up to the agent's first process, the tool's call among them, the sandbox's process."""
        pids: list[int] = []
        parent = read_status(pid, "PPid")
        while parent > 1 and parent != self.worker and len(pids) < _MOST_ANCESTORS:
            pids.append(parent)
            parent = read_status(parent, "PPid")
        while pids and read_link(pids[-1], "exe").rsplit("/", 1)[-1] == self.sandbox:
            parent = pids.pop()
        within = next((self.live[each]["n"] for each in pids if each in self.live), None)
        shown = pids if len(pids) <= 2 * MOST_PARENTS else [*pids[:MOST_PARENTS], *pids[-MOST_PARENTS:]]
        return [ancestor for each in shown if (ancestor := self.described(each))], within, parent

    def ended(self, pid: int, code: int | None, at: float) -> None:
        if call := self.live.pop(pid, None):
            # A process that is ending has given back its program.
            if not read_link(self.first.pop(pid), "exe") and code == -signal.SIGKILL:
                code = None
            call["seconds"] = round(max(0.0, at - call["start"]), 4)
            call["exit"] = code if code is not None and code >= 0 else None
            call["signal"] = -code if code is not None and code < 0 else None
            line = json.dumps(escape_bytes(call)).encode() + b"\n"
            if len(line) > self.room:
                self.lost += 1
            else:
                self.room -= os.write(self.output, line)

    def end_by_pidfd(self, descriptor: int) -> None:
        """Record the end of a process that another tracer holds; since Linux 6.15 its code is known."""
        pid = self.pidfds.pop(descriptor)
        self.poll.unregister(descriptor)
        info = bytearray(struct.pack("QQ12I", _EXIT_KNOWN, 0, *[0] * 12))
        code = None
        with contextlib.suppress(OSError):
            fcntl.ioctl(descriptor, _PIDFD_GET_INFO, info, True)
            if info[0] & _EXIT_KNOWN:
                code = os.waitstatus_to_exitcode(struct.unpack_from("i", info, 60)[0])
        os.close(descriptor)
        self.look_at_untraced()
        self.ended(pid, code, time.time())


def _known_files(workspace: str, inside: str) -> frozenset[str]:
    """Return the files of the workspace by the paths that the sandbox sees."""
    paths: set[str] = set()
    for folder, _, names in os.walk(workspace):
        base = inside + folder[len(workspace) :]
        paths.update(f"{base}/{name}" for name in names)
        if len(paths) > MOST_KNOWN_FILES:
            break
    return frozenset(paths)


def record_processes(settings: dict[str, Any], connection: int, output: int) -> None:
    """Receive the listener over the socket `connection`, then record until its last process has ended."""
    recorder = Recorder(settings, output)
    with socket.socket(fileno=connection) as from_launcher:
        rights = from_launcher.recvmsg(1, socket.CMSG_SPACE(4))[1]
    if rights:
        recorder.run(array.array("i", rights[0][2])[0])
        os.write(output, json.dumps({"lost": recorder.lost}).encode() + b"\n")


def main(descriptor: int) -> None:
    """Fork a recorder for each message, until the worker closes the socket."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as asking:
        while True:
            message, rights, _, _ = asking.recvmsg(LARGEST_SETTINGS, socket.CMSG_SPACE(3 * 4))
            if not message:
                return
            descriptors = array.array("i", rights[0][2])
            if not (pid := os.fork()):
                asking.close()
                os.setsid()
                record_processes(json.loads(message), descriptors[0], descriptors[1])
                os._exit(0)
            for received in descriptors:
                os.close(received)
            asking.send(struct.pack("i", pid))


if __name__ == "__main__":
    main(int(sys.argv[1]))
