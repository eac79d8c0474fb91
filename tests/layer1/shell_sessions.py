"""Generate shell sessions that call a tool in many ways; every call has a word of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random


@dataclass
class Generator:
    """Writes shell lines; the same seed gives the same lines."""

    random: Random
    tool: str = "./mt"
    words: int = 0
    definitions: list[str] = field(default_factory=list)

    def session(self, lines: int) -> list[str]:
        """Return the shell lines of a session."""
        return [self.line() for _ in range(lines)]

    def line(self) -> str:
        return self.random.choice(self._lines)(self)

    def word(self) -> str:
        self.words += 1
        return f"w{self.words}"

    def call(self) -> str:
        """Return a call of the tool."""
        kind = self.random.choice(["ok", "ok", "ok", f"fail {self.code()}", f"quiet {self.code()}"])
        return f"{self.tool} {kind} {self.word()}"

    def code(self) -> int:
        return self.random.choice([1, 2, 3, 7])

    def other(self) -> str:
        """Return a command of another program."""
        return self.random.choice(
            [
                "true",
                "false",
                "ls",
                "cat f.txt",
                "grep -q x f.txt",
                "grep -q zz f.txt",
                "test -f none",
                "sleep 0",
            ]
        )

    def any(self) -> str:
        return self.call() if self.random.random() < 0.7 else self.other()

    def wrapped(self) -> str:
        """Return a call behind a launcher."""
        wrap = self.random.choice(
            [
                "env A=1 {}",
                "timeout 9 {}",
                "nice {}",
                "nohup {}",
                "stdbuf -oL {}",
                "A=1 {}",
                "command {}",
                "time {}",
            ]
        )
        return wrap.format(self.call())

    def chain(self) -> str:
        items = [self.any() for _ in range(self.random.randint(2, 4))]
        joined = items[0]
        for item in items[1:]:
            joined += self.random.choice([" && ", " && ", " || "]) + item
        return joined

    def pipe(self) -> str:
        return f"{self.call()} 2>&1 | " + self.random.choice(
            ["tail -2", "cat", "grep -c stored", "head -1", "wc -l"]
        )

    _lines: list[Callable[[Generator], str]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self._lines = [
            Generator.call,
            Generator.wrapped,
            Generator.chain,
            Generator.chain,
            Generator.pipe,
            lambda own: f"{own.pipe()}; echo ${{PIPESTATUS[0]}}",
            lambda own: f"set -o pipefail; {own.pipe()}",
            lambda own: f'{own.any()}; {own.call()}; echo "exit: $?"',
            lambda own: f'{own.call()}; rc=$?; {own.other()}; echo "rc=$rc"',
            lambda own: f"{own.any()}; {own.any()}; {own.any()}",
            lambda own: f"{own.any()}\n{own.any()}",
            lambda own: f"! {own.call()}",
            lambda own: f"({own.any()}; {own.any()})",
            lambda own: f"{{ {own.any()}; {own.any()}; }} 2>&1",
            lambda own: f"bash -c '{own.chain()}'",
            lambda own: f"bash -lc '{own.any()}; {own.any()}'",
            lambda own: f"{own.call()} &\nwait",
            lambda own: f"{own.call()} & {own.call()} & wait; {own.any()}",
            lambda own: f"for i in 1 2 3; do {own.call()}; done",
            lambda own: f"if {own.call()}; then {own.any()}; else {own.any()}; fi",
            lambda own: f"if {own.call()}; then echo it-worked; else echo it-failed; fi",
            lambda own: f"{own.call()} && echo GOOD || echo BAD",
            lambda own: f"{own.call()} || echo BAD",
            lambda own: f"{own.call()} || true",
            lambda own: f"{own.call()} || exit {own.code()}; {own.call()}",
            lambda own: f"x=$({own.call()})",
            lambda own: f'echo "got $({own.call()})"',
            lambda own: f"bash <<'EOF'\n{own.any()}\n{own.call()}\nEOF",
            lambda own: f"cat <<EOF > o.txt && {own.call()}\n{own.tool} ok never\nEOF",
            lambda own: f"cat f.txt | xargs -n1 {own.tool} ok {own.word()} 2>/dev/null; true",
            lambda own: f"find . -name 'f.txt' -exec {own.call()} ';'",
            lambda own: f'eval "{own.chain()}"',
            lambda own: f'f() {{ {own.tool} "$@"; }}; f ok {own.word()} && f fail 3 {own.word()}',
            lambda own: f"T={own.tool}; $T ok {own.word()}; $T quiet 2 {own.word()}",
            lambda own: f"cd none 2>&1 && {own.call()}",
            lambda own: f"cd sub && .{own.tool} ok {own.word()}",
            lambda own: f"cd none 2>/dev/null && {own.call()}",
            lambda own: f"set -e; {own.any()}; {own.any()}",
            lambda own: f"echo '{own.tool} ok never'; grep -c mt {own.tool}; {own.call()}",
            lambda own: f"{own.call()} > o.txt 2>&1",
            lambda own: f"while {own.call()}; do break; done",
            lambda own: f"{own.other()} && {own.call()}; {own.other()} || {own.call()}",
            lambda own: f"timeout 9 bash -c '{own.any()} && {own.any()}' | cat",
            lambda own: f"for f in $({own.call()}); do {own.call()}; done",
            lambda own: f"[[ -n $({own.call()}) ]] && {own.call()}",
            lambda own: f"while read x; do true; done < <({own.call()})",
            lambda own: f"cat <<EOF\nit's $({own.call()})\nEOF\n{own.call()}",
            lambda own: f"x=\"$(cat <<'EOF'\ndon't (\nEOF\n)\" && {own.call()}",
            lambda own: f"case $({own.call()}) in *) {own.call()};; esac",
            lambda own: f"case x in x) {own.call()};; y) {own.tool} ok never;; esac",
        ]


def sessions(seed: int, count: int, lines: int = 6, tool: str = "./mt") -> list[list[str]]:
    """Return `count` sessions of shell lines."""
    return [Generator(Random(f"{seed} {n}"), tool).session(lines) for n in range(count)]
