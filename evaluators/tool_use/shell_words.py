"""Split a shell command line into words and operators.

Handles quotes, `$(…)`, backticks, redirections, comments and here-documents. Never rejects a line: text that is
not shell (prose, an open quote) is kept as written.
"""

from __future__ import annotations

import re
import shlex

from msgspec import Struct
from msgspec.structs import replace

_CHUNK = re.compile(
    r"""
    (?P<blank>(?:[ \t\r]|\\\n)+)
  | (?P<comment>(?<![^\s;&|(])\#[^\n]*)
  | (?P<heredoc><<-?[ \t]*(?P<delimiter>'[^'\n]+'|"[^"\n]+"|\\?\w[\w.-]*))
  | (?P<redirect>(?:(?<![^\s;&|])\d|&)?(?:>>|>\||<<<|[<>])(?:&\d?-?)?[ \t]*)
  | (?P<joiner>\|\||&&|\|&|;;?|\||&|\n)
  | (?P<single>'[^']*')
  | (?P<double>")
  | (?P<windows>(?<![^\s;&|(])(?:[A-Za-z]:|\.{1,2})?\\[\w.\\-]+\.(?:exe|cmd|bat|ps1)\b)
  | (?P<escaped>\\.)
  | (?P<substitution>[$<>]\(|`)
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
# As `shlex.quote` has it, but letters of any alphabet need no quotes.
_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]+")


class Word(Struct, frozen=True):
    """One word of a command."""

    value: str
    """The text without quotes."""
    masked: str
    """The value with empty command substitutions, so patterns do not match inside them."""
    redirect: bool = False
    scripts: tuple[str, ...] = ()
    """The scripts of its substitutions."""
    is_quoted: bool = False
    """Whether a part of it was quoted: it isn't a keyword then."""
    document: str | None = None
    """The text of its here-document."""

    def quoted(self, text: str) -> str:
        """Return the text with canonical quotes if it is a plain word."""
        if self.redirect or self.scripts or _PLAIN_WORD.fullmatch(text):
            return text
        return shlex.quote(text)

    @property
    def shown_document(self) -> str:
        """Return its here-document on one line; empty without one."""
        return _BLANKS.sub(" ", self.document or "").strip()


class Operator(Struct, frozen=True):
    """What stands between commands: `&&`, `||`, `|`, `;`, `;;`, `&`, a newline, or `(` and `)` of a subshell."""

    text: str


Token = Word | Operator


def split_words(line: str) -> list[Token]:
    """Return the words and operators of one or more lines in order. Never raises."""
    return _ShellReader(line).read()


class _ShellReader:
    """Reads a line in one pass."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.position = 0
        self.tokens: list[Token] = []
        self.value: list[str] = []
        self.masked: list[str] = []
        self.scripts: list[str] = []
        self.started = self.redirect = self.is_quoted = False
        self.groups = 0
        self.documents: list[tuple[int, str]] = []
        """Here-documents that come after this line: the index of the word, and the delimiter."""
        # After an unclosed `$(` or quote, later ones are literal: searching again would be quadratic.
        self.no_end_of: set[str] = set()

    def read(self) -> list[Token]:
        while chunk := _CHUNK.match(self.line, self.position):
            self.position = chunk.end()
            self.take(chunk)
        self.end_word()
        return self.tokens

    def take(self, chunk: re.Match[str]) -> None:
        text = chunk.group()
        match chunk.lastgroup:
            case "blank":
                self.end_word()
            case "comment":
                pass
            case "heredoc":
                self.end_word()
                delimiter = chunk["delimiter"].strip("'\"\\")
                self.documents.append((len(self.tokens), delimiter))
                self.tokens.append(Word("<<" + delimiter, "<<", redirect=True))
            case "redirect" if not self.line.startswith("(", self.position) or text not in ("<", ">"):
                self.end_word()
                self.add(text.strip())
                self.redirect = True
            case "redirect":
                self.position += 1
                self.substitution(text + "(")
            case "joiner":
                self.join(text)
            case "single":
                self.add(text[1:-1], is_quoted=True)
            case "escaped":
                self.add(text[1], is_quoted=True)
            case "double":
                self.double()
            case "substitution":
                self.substitution(text)
            case "paren":
                self.paren(text)
            case _:
                self.add(text)

    def add(self, text: str, *, script: str | None = None, is_quoted: bool = False) -> None:
        self.started = True
        self.is_quoted |= is_quoted
        self.value.append(text)
        self.masked.append(text if script is None else "$()")
        if script is not None:
            self.scripts.append(script)

    def end_word(self) -> None:
        if not self.started:
            return
        scripts = tuple(self.scripts)
        self.tokens.append(
            Word("".join(self.value), "".join(self.masked), self.redirect, scripts, self.is_quoted)
        )
        self.value, self.masked, self.scripts = [], [], []
        self.started = self.redirect = self.is_quoted = False

    def join(self, joiner: str) -> None:
        self.end_word()
        if joiner == "\n":
            self.read_documents()
        self.tokens.append(Operator("|" if joiner == "|&" else joiner))

    def read_documents(self) -> None:
        for index, delimiter in self.documents:
            end = re.compile(rf"^\t*{re.escape(delimiter)}[ \t\r]*$", re.MULTILINE).search(
                self.line, self.position
            )
            stop, after = (end.start(), end.end() + 1) if end else (len(self.line), len(self.line))
            word = self.tokens[index]
            if isinstance(word, Word):
                self.tokens[index] = replace(word, document=self.line[self.position : stop])
            self.position = min(after, len(self.line))
        self.documents = []

    def double(self) -> None:
        """Read a double-quoted string, starting after the opening quote."""
        if '"' in self.no_end_of:
            self.add('"')
            return
        start, parts, scripts = self.position, len(self.value), len(self.scripts)
        self.add("", is_quoted=True)
        while chunk := _IN_DOUBLE.match(self.line, self.position):
            self.position = chunk.end()
            text = chunk.group()
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
        """Read `$(…)`, `<(…)` or backticks, starting after the opening."""
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
        for bracket in _NESTING.finditer(self.line, self.position):
            depth += {"(": 1, ")": -1}.get(bracket.group(), 0)
            if depth == 0:
                return bracket.start()
        return -1

    def paren(self, text: str) -> None:
        """Open or close a subshell; elsewhere parentheses are characters."""
        if text == "(" and not self.started and self.at_command:
            self.groups += 1
            self.tokens.append(Operator("("))
        elif text == ")" and self.groups:
            self.groups -= 1
            self.end_word()
            self.tokens.append(Operator(")"))
        else:
            self.add(text)

    @property
    def at_command(self) -> bool:
        """Whether the next word begins a command."""
        last = self.tokens[-1] if self.tokens else None
        return (
            last is None
            or isinstance(last, Operator)
            or (last.value in BEFORE_COMMANDS and not last.is_quoted)
        )


BEFORE_COMMANDS = frozenset(["!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"])
"""Keywords after which a command begins."""
