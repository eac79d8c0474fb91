"""Find the script that an interpreter or a shell runs, from its arguments."""

from __future__ import annotations

import os
import re

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


def interpreter(argv: list[str], exe: str) -> InterpreterOptions | None:
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
    options = interpreter(argv, exe)
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
