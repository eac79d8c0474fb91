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
    (?P<empty>[ \t]*+\(\))
  | (?P<blank>(?:[ \t\r]|\\\n)+)
  | (?P<comment>(?<![^\s;&|(])\#[^\n]*)
  | (?P<heredoc><<-?[ \t]*(?P<delimiter>'[^'\n]+'|"[^"\n]+"|\\?\w[\w.-]*))
  | (?P<redirect>(?:(?<![^\s;&|])\d|&)?(?:>>|>\||<<<|[<>])(?:&\d?-?)?[ \t]*)
  | (?P<joiner>\|\||&&|\|&|;;?|\||&|\n)
  | (?P<single>'[^']*')
  | (?P<ansi>\$'(?:[^'\\]|\\.)*+')
  | (?P<double>")
  | (?P<windows>(?<![^\s;&|(])(?:[A-Za-z]:|\.{1,2})?\\[\w.\\-]+\.(?:exe|cmd|bat|ps1)\b)
  | (?P<escaped>\\.)
  | (?P<arithmetic>\(\((?:[^\n()"'`$]|\$(?!\()|\([^\n()]{0,80}\)){0,200}+\)\))
  | (?P<substitution>[$<>]\(|`)
  | (?P<paren>[()])
  | (?P<plain>[^\s\\'"$`;&|<>()]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(r'[^"\\$`]+|\\.|\$\(|.', re.DOTALL)
_ARITHMETIC = re.compile(r"""\$\(\((?:[^\n;()"'`$]|\$(?!\()|\([^\n()]{0,80}\)){0,200}+\)\)""")
_ARRAY = re.compile(r"\w+(?:\[[^\]]*\])?\+?=")
_ESCAPED_IN_DOUBLE = re.compile(r'\\(["\\$`])')
_ESCAPED_QUOTE = re.compile(r"""\\(['"\\])""")
_BLANKS = re.compile(r"\s+")
DEEPEST = 25
"""The deepest nesting of substitutions and of compound commands; deeper keywords are words."""
LONGEST_VALUE = 400
"""The longest value of a variable or an alias that is followed, in characters."""
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
    """The scripts of its substitutions, and of those in its here-document."""
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
    """What separates commands: `&&`, `||`, `|`, `;`, `;;`, `&`, a newline, or `(` and `)` of a subshell."""

    text: str


Token = Word | Operator


def split_words(line: str) -> list[Token]:
    """Return the words and operators of one or more lines in order. Never raises."""
    return _ShellReader(line).read()


class _ShellReader:
    """Reads a line in one pass, or the script of a substitution in it, up to its `)`."""

    def __init__(self, line: str, outer: _ShellReader | None = None) -> None:
        self.line = line
        self.position: int = outer.position if outer else 0
        self.depth: int = outer.depth + 1 if outer else 0
        self.tokens: list[Token] = []
        self.value: list[str] = []
        self.masked: list[str] = []
        self.scripts: list[str] = []
        self.started = self.redirect = self.is_quoted = False
        self.groups = 0
        self.literal = 0
        """Open parentheses that are characters."""
        self.cases: list[int] = []
        """The open groups where each `case` begins, in which a `)` ends a pattern."""
        self.documents: list[tuple[int, str, bool]] = []
        """Here-documents after this line: the index of the word, the delimiter, and whether that is quoted."""
        # After an unclosed `$(` or quote, later ones are literal: searching again would be quadratic.
        self.no_end_of: set[str] = outer.no_end_of if outer else set()
        self.is_closed = self.has_failed = False

    def read(self) -> list[Token]:
        while not (self.is_closed or self.has_failed) and (chunk := _CHUNK.match(self.line, self.position)):
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
            case "empty":
                self.name_function()
            case "heredoc":
                self.end_word()
                delimiter = chunk["delimiter"].strip("'\"\\")
                is_quoted = delimiter != chunk["delimiter"]
                self.documents.append((len(self.tokens), delimiter, is_quoted))
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
            case "ansi":
                self.add(_ESCAPED_QUOTE.sub(r"\1", text[2:-1]), is_quoted=True)
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
        word = Word(
            "".join(self.value), "".join(self.masked), self.redirect, tuple(self.scripts), self.is_quoted
        )
        if self.at_command and not word.is_quoted:
            if word.value == "case":
                self.cases.append(self.groups)
            elif word.value == "esac" and self.cases:
                self.cases.pop()
        self.tokens.append(word)
        self.value, self.masked, self.scripts = [], [], []
        self.started = self.redirect = self.is_quoted = False

    def name_function(self) -> None:
        """Read the `()` of a function, which may be apart from its name."""
        if not self.started and self.tokens and isinstance(name := self.tokens[-1], Word):
            self.tokens[-1] = replace(name, value=f"{name.value}()", masked=f"{name.masked}()")
        else:
            self.add("()")

    def join(self, joiner: str) -> None:
        self.end_word()
        if joiner == "\n":
            self.read_documents()
        self.tokens.append(Operator("|" if joiner == "|&" else joiner))

    def read_documents(self) -> None:
        for index, delimiter, is_quoted in self.documents:
            end = re.compile(rf"^\t*{re.escape(delimiter)}[ \t\r]*$", re.MULTILINE).search(
                self.line, self.position
            )
            stop, after = (end.start(), end.end() + 1) if end else (len(self.line), len(self.line))
            word = self.tokens[index]
            if isinstance(word, Word):
                text = self.line[self.position : stop]
                scripts = () if is_quoted or self.depth else _scripts_of(text)
                self.tokens[index] = replace(word, document=text, scripts=scripts)
            self.position = min(after, len(self.line))
        self.documents = []

    def double(self) -> None:
        """Read a double-quoted string, starting after the opening quote."""
        if '"' in self.no_end_of:
            self.add('"')
            return
        start, parts, scripts = self.position, len(self.value), len(self.scripts)
        self.add("", is_quoted=True)
        if self.quoted('"'):
            return
        if self.depth:
            self.has_failed = True
            return
        # No closing quote: keep the quote as a character.
        self.no_end_of.add('"')
        self.position = start
        del self.value[parts:], self.masked[parts:], self.scripts[scripts:]
        self.add('"')

    def quoted(self, end: str) -> bool:
        """Read text in which only substitutions mean something, up to its end; return whether that was there."""
        while not self.has_failed and (chunk := _IN_DOUBLE.match(self.line, self.position)):
            self.position = chunk.end()
            text = chunk.group()
            if text == end:
                return True
            if text in ("$(", "`"):
                self.substitution(text)
            else:
                self.add(_ESCAPED_IN_DOUBLE.sub(r"\1", text))
        return False

    def substitution(self, opening: str) -> None:
        """Read `$(…)`, `<(…)` or backticks, starting after the opening."""
        if arithmetic := _ARITHMETIC.match(self.line, self.position - len(opening)):
            self.position = arithmetic.end()
            self.add(arithmetic.group())
            return
        end = -1 if opening in self.no_end_of else self.closing(opening)
        if end < 0:
            # What holds an open substitution has no end either.
            self.has_failed = self.depth > 0
            self.no_end_of.add(opening)
            self.add(opening)
            return
        script = self.line[self.position : end]
        self.position = end + 1
        self.add(opening + script + self.line[end], script=script)

    def closing(self, opening: str) -> int:
        if opening == "`":
            return self.line.find("`", self.position)
        inner = self.nested()
        return inner.position - 1 if inner else -1

    def nested(self) -> _ShellReader | None:
        """Return a reader that has read up to the `)` of what begins here; None without one."""
        if self.depth >= DEEPEST:
            return None
        inner = _ShellReader(self.line, self)
        inner.read()
        return inner if inner.is_closed else None

    def paren(self, text: str) -> None:
        """Open or close a subshell, end a pattern of `case`; elsewhere parentheses are characters."""
        if text == "(":
            if not self.started and self.at_command:
                self.groups += 1
                self.tokens.append(Operator("("))
            elif not self.array():
                self.literal += 1
                self.add(text)
            return
        if self.value == ["esac"]:
            self.end_word()
        if self.literal:
            self.literal -= 1
            self.add(text)
        elif self.cases and self.cases[-1] == self.groups:
            self.end_word()
            self.tokens.append(Operator(")"))
        elif self.groups:
            self.groups -= 1
            self.end_word()
            self.tokens.append(Operator(")"))
        elif self.depth:
            self.is_closed = True
        else:
            self.add(text)

    def array(self) -> bool:
        """Read the values of `name=(…)`; return whether they are there."""
        if "array" in self.no_end_of or len(self.value) != 1 or not _ARRAY.fullmatch(self.value[0]):
            return False
        start = self.position
        if (inner := self.nested()) is None:
            self.no_end_of.add("array")
            return False
        self.position = inner.position
        self.add(self.line[start - 1 : inner.position])
        self.scripts += [script for word in inner.tokens if isinstance(word, Word) for script in word.scripts]
        return True

    @property
    def at_command(self) -> bool:
        """Whether the next word begins a command."""
        last = self.tokens[-1] if self.tokens else None
        return (
            last is None
            or isinstance(last, Operator)
            or (last.value in BEFORE_COMMANDS and not last.is_quoted)
        )


def _scripts_of(document: str) -> tuple[str, ...]:
    """Return the scripts of the substitutions in a here-document whose delimiter isn't quoted."""
    reader = _ShellReader(document)
    reader.quoted("")
    return tuple(reader.scripts)


BEFORE_COMMANDS = frozenset(["!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"])
"""Keywords after which a command begins."""
