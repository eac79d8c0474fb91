"""Split a shell command line into simple commands, each a list of words.

Handles quotes, `$(…)`, backticks, redirections, comments and here-documents. Never rejects a line: text that is
not shell (prose, an open quote) is kept as written.
"""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

_CHUNK = re.compile(
    r"""
    (?P<blank>(?:[ \t\r]|\\\n)+)
  | (?P<comment>(?<![^\s;&|(])\#[^\n]*)
  | (?P<heredoc><<-?[ \t]*(?P<delimiter>'[^'\n]+'|"[^"\n]+"|\\?\w[\w.-]*))
  | (?P<redirect>(?:(?<![^\s;&|])\d|&)?(?:>>|>\||<<<|[<>])(?:&\d?-?)?[ \t]*)
  | (?P<joiner>\|\||&&|\|&|;;?|\||&|\n)
  | (?P<single>'[^']*')
  | (?P<double>")
  | (?P<escaped>\\.)
  | (?P<substitution>\$\(|`)
  | (?P<paren>[()])
  | (?P<plain>[^\s\\'"$`;&|<>()]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(r'[^"\\$`]+|\\.|\$\(|.', re.DOTALL)
_NESTING = re.compile(r"""\\.|'[^']*'|"(?:[^"\\]|\\.)*"|[()]""", re.DOTALL)
_ESCAPED_IN_DOUBLE = re.compile(r'\\(["\\$`])')
_BLANKS = re.compile(r"\s+")


class Word(Struct, frozen=True):
    """One word of a command."""

    value: str
    """The text without quotes."""
    masked: str
    """The value with empty command substitutions, so patterns do not match inside them."""
    redirect: bool = False
    scripts: tuple[str, ...] = ()
    """The scripts of its substitutions."""

    def quoted(self, text: str) -> str:
        """Return the text with canonical quotes if it is a plain word."""
        return text if self.redirect or self.scripts else shlex.quote(text)


class Simple(Struct, frozen=True):
    """A simple command and the operator after it (empty at the end of the line)."""

    words: tuple[Word, ...]
    joiner: str = ""
    document: str = ""
    """The text of its here-documents, with single spaces."""


def simple_commands(line: str) -> tuple[Simple, ...]:
    """Return the simple commands of one or more lines in order. Never raises."""
    return _ShellReader(line).read()


class _ShellReader:
    """Reads a line in one pass."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.position = 0
        self.commands: list[Simple] = []
        self.words: list[Word] = []
        self.value: list[str] = []
        self.masked: list[str] = []
        self.scripts: list[str] = []
        self.started = self.redirect = False
        self.groups = 0
        self.delimiters: list[str] = []
        self.documents: list[str] = []
        # After an unclosed `$(` or quote, later ones are literal: searching again would be quadratic.
        self.no_end_of: set[str] = set()

    def read(self) -> tuple[Simple, ...]:
        while found := _CHUNK.match(self.line, self.position):
            self.position = found.end()
            self.take(found)
        self.end_command("")
        return tuple(self.commands)

    def take(self, found: re.Match[str]) -> None:
        text = found.group()
        match found.lastgroup:
            case "blank":
                self.end_word()
            case "comment":
                pass
            case "heredoc":
                self.end_word()
                self.delimiters.append(found["delimiter"].strip("'\"\\"))
                self.words.append(Word("<<" + self.delimiters[-1], "<<", redirect=True))
            case "redirect":
                self.end_word()
                self.add(text.strip())
                self.redirect = True
            case "joiner":
                self.join(text)
            case "single":
                self.add(text[1:-1])
            case "escaped":
                self.add(text[1])
            case "double":
                self.double()
            case "substitution":
                self.substitution(text)
            case "paren":
                self.paren(text)
            case _:
                self.add(text)

    def add(self, text: str, *, script: str | None = None) -> None:
        self.started = True
        self.value.append(text)
        self.masked.append(text if script is None else "$()")
        if script is not None:
            self.scripts.append(script)

    def end_word(self) -> None:
        if not self.started:
            return
        word = Word("".join(self.value), "".join(self.masked), self.redirect, tuple(self.scripts))
        self.words.append(word)
        self.value, self.masked, self.scripts = [], [], []
        self.started = self.redirect = False

    def end_command(self, joiner: str) -> None:
        self.end_word()
        if self.words:
            document = _BLANKS.sub(" ", " ".join(self.documents)).strip()
            self.commands.append(Simple(tuple(self.words), joiner, document))
        self.words, self.documents = [], []

    def join(self, joiner: str) -> None:
        self.end_word()
        if joiner == "\n":
            self.read_documents()
        self.end_command("|" if joiner == "|&" else joiner)

    def read_documents(self) -> None:
        for delimiter in self.delimiters:
            end = re.compile(rf"^\t*{re.escape(delimiter)}[ \t\r]*$", re.MULTILINE).search(
                self.line, self.position
            )
            stop, after = (end.start(), end.end() + 1) if end else (len(self.line), len(self.line))
            self.documents.append(self.line[self.position : stop])
            self.position = min(after, len(self.line))
        self.delimiters = []

    def double(self) -> None:
        """Read a double-quoted string, starting after the opening quote."""
        if '"' in self.no_end_of:
            self.add('"')
            return
        start, parts, scripts = self.position, len(self.value), len(self.scripts)
        self.add("")
        while found := _IN_DOUBLE.match(self.line, self.position):
            self.position = found.end()
            text = found.group()
            if text == '"':
                return
            if text in ("$(", "`"):
                self.substitution(text)
            else:
                self.add(_ESCAPED_IN_DOUBLE.sub(r"\1", text))
        # No closing quote: keep the quote as a character.
        self.no_end_of.add('"')
        self.position = start
        del self.value[parts:], self.masked[parts:], self.scripts[scripts:]
        self.add('"')

    def substitution(self, opening: str) -> None:
        """Read `$(…)` or backticks, starting after the opening."""
        end = -1 if opening in self.no_end_of else self.closing(opening)
        if end < 0:
            self.no_end_of.add(opening)
            self.add(opening)
            return
        script = self.line[self.position : end]
        self.position = end + 1
        self.add(opening + script + self.line[end], script=script)

    def closing(self, opening: str) -> int:
        if opening == "`":
            return self.line.find("`", self.position)
        depth = 1
        for found in _NESTING.finditer(self.line, self.position):
            depth += {"(": 1, ")": -1}.get(found.group(), 0)
            if depth == 0:
                return found.start()
        return -1

    def paren(self, text: str) -> None:
        """Drop the parentheses of a subshell; within a word they are characters."""
        if text == "(" and not self.words and not self.started:
            self.groups += 1
        elif text == ")" and self.groups:
            self.groups -= 1
            self.end_word()
        else:
            self.add(text)
