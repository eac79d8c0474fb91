"""Recognize the tool in a process right after its exec, also in a script that an interpreter or a shell runs.

Reads the process from outside its sandbox. Standard library only, because the recorder imports it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import stat
import struct
from typing import Any

_AT_EXECFN = 31
_OPENAT2, _RESOLVE_IN_ROOT = 437, 0x10
LONGEST_ARGUMENTS = 16_384
LONGEST_ENVIRONMENT = 1 << 18
SHOWN_ARGUMENTS = 4_000
"""Bytes of the arguments of processes that lead to a call."""
MOST_PARENTS = 8
"""The most of the nearest ancestors, and of the topmost."""

libc = ctypes.CDLL(None, use_errno=True)


def read_process_file(pid: int, name: str, size: int = LONGEST_ARGUMENTS, at: int | None = None) -> bytes:
    """Return the beginning of a file of a process, or what is at an address of its memory. Raises `OSError`."""
    descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size) if at is None else os.pread(descriptor, size, at)
    finally:
        os.close(descriptor)


def read_link(pid: int, name: str) -> str:
    """Return where a link of a process leads, as the process sees it; empty if it can't be read."""
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def read_status(pid: int, name: str) -> int:
    """Return the first number of a field of a process's status. Raises `OSError`."""
    match = re.search(rb"^%s:\t(\d+)" % name.encode(), read_process_file(pid, "status"), re.MULTILINE)
    if match is None:
        raise OSError(f"The process has no {name}")
    return int(match[1])


def read_arguments(pid: int, most: int = LONGEST_ARGUMENTS) -> list[str]:
    """Return a process's arguments, at most this many bytes. Raises `OSError`."""
    return os.fsdecode(read_process_file(pid, "cmdline", most)).rstrip("\0").split("\0")


def image_of(pid: int) -> tuple[str, bytes]:
    """Return what changes when a process executes a program: the program's path and the arguments."""
    try:
        return read_link(pid, "exe"), read_process_file(pid, "cmdline", SHOWN_ARGUMENTS)
    except OSError:
        return "", b""


def executed_path(pid: int) -> str:
    """Return the path that a process gave to `execve`, from its new image. Raises `OSError` or `KeyError`."""
    vector = read_process_file(pid, "auxv", 1024)
    at = dict(struct.iter_unpack("QQ", vector[: len(vector) // 16 * 16])).get(_AT_EXECFN)
    if at is None:  # a 32-bit program
        at = dict(struct.iter_unpack("II", vector[: len(vector) // 8 * 8]))[_AT_EXECFN]
    path = os.fsdecode(read_process_file(pid, "mem", 4096 - at % 4096, at).split(b"\0", 1)[0])
    if path.startswith("/dev/fd/"):  # fexecve
        return read_link(pid, "fd/" + path.split("/")[3])
    return path


def open_inside(pid: int, path: str) -> int:
    """Return a descriptor of a file as the process sees it; links never lead out of its root. Raises `OSError`."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    try:
        how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT)
        descriptor = libc.syscall(_OPENAT2, root, os.fsencode(path), how, len(how))
    finally:
        os.close(root)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), path)
    return int(descriptor)


def escape_bytes(value: Any) -> Any:
    """Return what was read of processes as JSON may have it: bytes that aren't UTF-8 as `\\xNN`.

    Paths and arguments are bytes to Linux, and a cut may fall inside a character.
    """
    if isinstance(value, str):
        return value if value.isascii() else os.fsencode(value).decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {name: escape_bytes(each) for name, each in value.items()}
    return [escape_bytes(each) for each in value] if isinstance(value, list | tuple) else value


def describe_process(pid: int, writable: tuple[str, ...], known: frozenset[str]) -> dict[str, Any]:
    """Return a process as JSON: its program and arguments, and the script that it runs. Raises `OSError`.

    `writable` are folders where the sandbox can write, `known` the files that were in them at the start.
    """
    argv, exe = read_arguments(pid, SHOWN_ARGUMENTS), read_link(pid, "exe")
    described: dict[str, Any] = {"pid": pid, "argv": argv[:64], "exe": exe}
    at, is_module = script_of(argv, exe)
    if at:
        path = _script_path(pid, argv[at], is_module=is_module)
        described["script"] = path
        inside = any(path == folder or path.startswith(f"{folder}/") for folder in writable)
        described["written"] = inside and path not in known
    if marks := _marks(pid):
        described["marks"] = marks
    return described


def _script_path(pid: int, word: str, *, is_module: bool) -> str:
    """Return the path of a script; of a module, that of its file in the working folder, else its name."""
    cwd = read_link(pid, "cwd") or "/"
    if not is_module:
        return os.path.normpath(os.path.join(cwd, word))
    module = module_of(word)
    return next((path for path in module_paths(module, cwd) if _exists(pid, path)), module)


def _exists(pid: int, path: str) -> bool:
    try:
        os.close(open_inside(pid, path))
    except OSError:
        return False
    return True


def _marks(pid: int) -> dict[str, str]:
    """Return the variables by which agent programs mark the model's commands; no others, which may be secrets."""
    try:
        content = read_process_file(pid, "environ", LONGEST_ENVIRONMENT)
    except OSError:
        return {}
    pairs = (each.partition("=") for each in os.fsdecode(content).split("\0"))
    return {
        name: value[:200]
        for name, _, value in pairs
        if name in ("AI_AGENT", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID")
    }


_SHELL = re.compile(r"(?:ba|da|z|k|mk|pdk|fi|a)?sh\d*(?:\.\w+)?")
_VERSION = re.compile(r"[\d.]+$")
_LOADER = re.compile(r"ld(?:-linux|-musl)?[\w.-]*\.so[\d.]*")


class InterpreterOptions:
    """How an interpreter's options lead to its script."""

    def __init__(
        self, inline: str = "", values: str = "", modules: str = "", longs: str = "", codes: str = ""
    ) -> None:
        self.inline = inline
        """Letters of options whose value is the code."""
        self.values = values
        """Letters of options with a value."""
        self.modules = modules
        """Letters of options whose value is a module."""
        self.longs = frozenset(longs.split())
        """Long options whose value is the next word."""
        self.codes = frozenset(codes.split())
        """Long options whose value is code."""


_PYTHON = InterpreterOptions("c", "WXQ", "m", "--check-hash-based-pycs")
_SHELLS = InterpreterOptions("cs", "oO", longs="--rcfile --init-file")
_NODE = InterpreterOptions(
    "ep",
    "rC",
    longs="--require --import --loader --experimental-loader --env-file --conditions --title --input-type",
    codes="--eval --print",
)
_INTERPRETERS = {
    "python": _PYTHON,
    "pypy": _PYTHON,
    "node": _NODE,
    "bun": InterpreterOptions("ep", "r", longs="--preload --cwd --config", codes="--eval --print"),
    "deno": InterpreterOptions(longs="--config --import-map --lock --env-file"),
    "ruby": InterpreterOptions("e", "ICE"),
    "perl": InterpreterOptions("eE", "I"),
    "php": InterpreterOptions("r", "dc"),
    "lua": InterpreterOptions("e", "l"),
}


def find_interpreter(argv: list[str], exe: str) -> InterpreterOptions | None:
    """Return how a program that runs scripts reads its options; None for any other program."""
    name = exe.rsplit("/", 1)[-1]
    if name in ("busybox", "toybox") and argv:
        name = argv[0].rsplit("/", 1)[-1].removeprefix("-")
    if _SHELL.fullmatch(name):
        return _SHELLS
    if _LOADER.fullmatch(name):
        return InterpreterOptions()
    return _INTERPRETERS.get(_VERSION.sub("", name).rstrip("-"))


def script_of(argv: list[str], exe: str) -> tuple[int, bool]:
    """Return the place of the script in an interpreter's arguments, and whether it names a module.

    The place is 0 for other programs, for inline code and for standard input.
    """
    options = find_interpreter(argv, exe)
    if options is None:
        return 0, False
    at = 1
    while at < len(argv):
        word = argv[at]
        if word == "--":
            return (at + 1, False) if at + 1 < len(argv) else (0, False)
        if word in ("-", ""):
            return 0, False
        if word[0] not in "-+" or (word[0] == "+" and options is not _SHELLS):
            if word in ("run",) and options in (_INTERPRETERS["bun"], _INTERPRETERS["deno"]):
                at += 1
                continue
            return at, False
        if word.startswith("--"):
            if word.split("=", 1)[0] in options.codes:
                return 0, False
            at += 2 if word in options.longs else 1
            continue
        step, is_module = _behind_letters(word, options)
        if not step or is_module:
            place = at + step - 1
            return (place, True) if is_module and place < len(argv) else (0, False)
        at += step
    return 0, False


def _behind_letters(word: str, options: InterpreterOptions) -> tuple[int, bool]:
    """Return how many words one-letter options take, 0 if they bring code, and whether the last is a module."""
    for n, letter in enumerate(word[1:], 2):
        if letter in options.inline:
            return 0, False
        if letter in options.modules:
            return (1 if word[n:] else 2), True
        if letter in options.values:
            return (1 if word[n:] else 2), False
    return 1, False


def module_of(word: str) -> str:
    """Return the module of an option's word, which may be in one with it: `-mtool`."""
    return re.sub(r"^-\w*?m", "", word) if word.startswith("-") else word


def module_paths(module: str, cwd: str) -> list[str]:
    """Return where the file of a module in the working folder may lie."""
    base = os.path.join(cwd, *module.split("."))
    return [f"{base}.py", f"{base}/__main__.py"]


_HASHED_BYTES = 64 << 20

File = tuple[int, int]
"""Device and inode."""
Content = tuple[int, str]
"""Size and hash."""


class WantedProgram:
    """The program under test: its name, and where it may lie as the sandbox sees it."""

    def __init__(self, name: str, places: list[str], *, by_name: bool) -> None:
        self.name = name
        self.places = places
        self.by_name = by_name
        """Whether any program of that name is the tool, wherever it is."""
        self.known: dict[File, Content] = {}
        self.namesakes: set[File] = set()
        self.is_one_of_many = False
        """Whether the tool is a link to a program of many names, such as busybox."""
        self._hashes: dict[tuple[int, int, int, int], str] = {}

    def matches(self, pid: int, path: str, argv: list[str], exe: str, cwd: str) -> str:
        """Return how a program is the tool: `file`, `copy`, `name`, `argument` or `module`; empty if it is not."""
        # Read the tool's own files: they may be built, installed or replaced while the agent works.
        for place in self.places:
            with contextlib.suppress(OSError):
                file, content, real = self._file(pid, place, is_hashed=True)
                self.known[file] = content
                name = real.rsplit("/", 1)[-1]
                self.is_one_of_many = name != self.name and not name.endswith(
                    (".js", ".py", ".mjs", ".cjs", ".ts", ".rb", ".sh", ".pl")
                )
        at, is_module = script_of(argv, exe)
        if at and not self.is_script(pid, path, cwd):
            if is_module:
                return "module" if module_of(argv[at]) == self.name else ""
            if self._same(pid, argv[at], cwd):
                return "argument"
        return self._same(pid, path, cwd)

    def is_script(self, pid: int, path: str, cwd: str) -> bool:
        """Return whether the kernel started an interpreter for a script: the path isn't the running program's."""
        try:
            running = os.stat(f"/proc/{pid}/exe")
            return self._file(pid, os.path.join(cwd or "/", path), is_hashed=False)[0] != (
                running.st_dev,
                running.st_ino,
            )
        except OSError:
            return False

    def _same(self, pid: int, path: str, cwd: str) -> str:
        try:
            full = os.path.join(cwd or "/", path)
            file, content, _ = self._file(pid, full, is_hashed=False)
        except OSError:  # removed, or in memory: the image itself is still there
            full, (file, content) = "", self._image(pid)
        is_named = path.rsplit("/", 1)[-1] == self.name
        if file in self.known and (is_named or not self.is_one_of_many):
            return "file"
        if content[0] in {size for size, _ in self.known.values()}:
            if not content[1] and full:
                with contextlib.suppress(OSError):
                    content = self._file(pid, full, is_hashed=True)[1]
            if content in self.known.values() and (is_named or not self.is_one_of_many):
                return "copy"
        if is_named and (self.by_name or not self.known):
            # Installed while the agent works, or found in a virtual environment: now its file counts.
            self.namesakes.add(file)
        return "name" if file in self.namesakes else ""

    def _file(self, pid: int, path: str, *, is_hashed: bool) -> tuple[File, Content, str]:
        descriptor = open_inside(pid, path)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise OSError("not a file")
            digest = self._hash(f"/proc/self/fd/{descriptor}", state) if is_hashed else ""
            return (
                (state.st_dev, state.st_ino),
                (state.st_size, digest),
                os.readlink(f"/proc/self/fd/{descriptor}"),
            )
        finally:
            os.close(descriptor)

    def _image(self, pid: int) -> tuple[File, Content]:
        path = f"/proc/{pid}/exe"
        state = os.stat(path)
        is_like = state.st_size in {size for size, _ in self.known.values()}
        return (state.st_dev, state.st_ino), (state.st_size, self._hash(path, state) if is_like else "")

    def _hash(self, path: str, state: os.stat_result) -> str:
        key = (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)
        if key not in self._hashes:
            with open(path, "rb") as content:
                self._hashes[key] = hashlib.sha256(content.read(_HASHED_BYTES)).hexdigest()
        return self._hashes[key]
