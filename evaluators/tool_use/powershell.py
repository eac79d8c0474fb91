"""Read a line of PowerShell (PowerShell Language Specification 3.0, 2 and 8).

Splits it outside quotes into commands. How they ended is known only for a line of commands one after the other: in
blocks, pipelines and `&&`, and where `exit` may come first, the end of every command is unknown.
"""

from __future__ import annotations

import re

from evaluators.tool_use.shell_syntax import CaseStatement, Simple, Statement, Statements
from evaluators.tool_use.shell_words import LONGEST_VALUE, Word

POWERSHELLS = frozenset(["powershell", "pwsh"])

_CHUNK = re.compile(
    r"""
    (?P<blank>(?:[ \t\r]|`\r?\n)++)
  | (?P<comment><\#(?:[^#]|\#(?!>))*+(?:\#>)?|(?<![^\s;|(){}])\#[^\n]*)
  | (?P<document>@(?P<mark>['"])[ \t]*\r?\n)
  | '(?P<single>(?:[^']|'')*+)'
  | "(?P<double>(?:[^"`]|`.|"")*+)"
  | (?P<end>[;\n])
  | (?P<joiner>\|\|?|&&|&|[(){}]|[@$]\()
  | (?P<redirect>[*\d]?>{1,2}(?:&\d|[ \t]*))
  | (?P<word>`.|[^\s;|&(){}'"`<>\#@$]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'`(.)|"(")', re.DOTALL)


def parse_powershell(line: str) -> Statements:
    """Return the commands of one or more lines. Never raises."""
    reader = _Reader()
    while chunk := _CHUNK.match(line, reader.position):
        reader.position = chunk.end()
        reader.take(chunk)
    reader.end_command()
    statements = Statements(tuple(map(Statement, reader.commands)))
    # No shell of POSIX ends like this one; `case` is what gives its commands no ends.
    return statements if reader.is_plain else Statements((Statement(CaseStatement((statements,))),))


class _Reader:
    """Collects the words of commands."""

    def __init__(self) -> None:
        self.position = 0
        self.commands: list[Simple] = []
        self.words: list[Word] = []
        self.parts: list[str] = []
        self.values: dict[str, str] = {}
        """Variables that have a text, by name."""
        self.redirect = self.is_quoted = False
        self.is_plain = True
        """Whether there is nothing but commands, one after the other."""

    def take(self, chunk: re.Match[str]) -> None:
        text = chunk.group()
        match chunk.lastgroup:
            case "blank":
                self.end_word()
            case "comment":
                pass
            case "end":
                self.end_command()
            case "joiner" if text == "&" and not (self.words or self.parts):
                # The operator that calls what a string or a variable names.
                self.words.append(Word("&", "&"))
            case "joiner":
                self.is_plain = False
                self.end_command()
            case "redirect":
                self.end_word()
                self.parts, self.redirect = [text.strip()], True
            case "single":
                self.quote(chunk["single"].replace("''", "'"))
            case "double":
                self.quote(_ESCAPED.sub(r"\1\2", chunk["double"]))
            case "document":
                end = chunk.string.find(f"\n{chunk['mark']}@", self.position - 1)
                # Without its end, it takes the rest.
                end = len(chunk.string) if end < 0 else end
                self.quote(chunk.string[self.position : end])
                self.position = min(end + 3, len(chunk.string))
            case _:
                self.parts.append(text.removeprefix("`") or text)

    def quote(self, text: str) -> None:
        self.parts.append(text)
        self.is_quoted = True

    def end_word(self) -> None:
        if self.parts:
            text = "".join(self.parts)
            text = text if self.is_quoted else self.values.get(text.lower(), text)
            self.words.append(Word(text, text, self.redirect, is_quoted=self.is_quoted))
        self.parts, self.redirect, self.is_quoted = [], False, False

    def end_command(self) -> None:
        self.end_word()
        words, self.words = self.words, []
        if len(words) > 2 and words[0].value.startswith("$") and words[1].value == "=":
            name, words = words[0].value.lower(), words[2:]
            if len(words) == 1 and words[0].is_quoted:
                if len(words[0].value) <= LONGEST_VALUE:
                    self.values[name] = words[0].value
                return
            self.is_plain = False
        elif words and words[0].is_quoted:
            # A string by itself is printed.
            words = [Word("echo", "echo"), *words]
        if words and words[0].value == "&":
            words = words[1:]
        if words:
            self.is_plain &= words[0].value.lower() not in ("exit", "return", "throw", "break")
            self.commands.append(Simple(tuple(words)))
