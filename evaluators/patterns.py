r"""Untrusted regular expressions from uploaded files, in RE2's syntax or in JavaScript's.

RE2 matches in linear time, so it runs here. What it lacks (look-around, back-references), and what would take
it long, goes to a process that is killed when its time is up; `set_runner` says how to reach one.

Eval cases write patterns for JavaScript's `RegExp(text)`. Where JavaScript and RE2 differ, the pattern is
rewritten so that both engines match as JavaScript does (ECMA-262, RegExp without flags); a `\p{…}` keeps the
meaning its author intended. Values become text as in `String()` and `JSON.stringify()`, because expected texts
use their output.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import re2
from msgspec import Struct

from evaluators.model import Json

WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that JavaScript trims and `\\s` matches (ECMA-262, WhiteSpace and LineTerminator)."""
_POINT_LIMIT = 21
"""The most digits before the point that JavaScript writes without an exponent."""
_ZERO_LIMIT = -6
"""The smallest exponent that JavaScript writes as a decimal fraction."""


def string_of(value: Json) -> str:
    """Return a JSON value as text: texts unchanged, `7` for 7.0, compact JSON for the rest."""
    return value if isinstance(value, str) else javascript_json(value)


def javascript_json(value: Json) -> str:
    """Return compact JSON with JavaScript's number format and the keys in their order."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        pairs = (
            f"{json.dumps(str(key), ensure_ascii=False)}:{javascript_json(item)}"
            for key, item in value.items()
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(javascript_json, value)) + "]"
    # Integers stay exact, even where JavaScript would round.
    return str(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value == 0:
        return "0"
    sign, numbers, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, numbers))
    # The exponent is a letter only for non-finite numbers.
    return ("-" if sign else "") + _written(digits, len(digits) + int(exponent))


def _written(digits: str, point: int) -> str:
    """Place the decimal point after `point` digits (ECMAScript, Number::toString)."""
    if len(digits) <= point <= _POINT_LIMIT:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _POINT_LIMIT:
        return f"{digits[:point]}.{digits[point:]}"
    if _ZERO_LIMIT < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


LONGEST = 2_000
"""Bytes of a pattern."""

MOST_REPEATS = 5_000
"""The largest product of nested counts, such as 600 in `(a{20}b){30}`."""

SECONDS = 0.5
"""Processor time that one compilation or search may take in its separate process."""

SECONDS_IN_ALL = 5.0
"""Processor time that all patterns of one evaluation or upload may take there."""

_MOST_WORK = 20_000_000
"""Instructions times bytes that RE2 may search here; 0.1 s where it is slowest."""

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
# Compiling takes up to 30 ms of Python's lock at this size, four times as long at the default.
_OPTIONS.max_mem = 2 << 20

Engine = Literal["re2", "regex"]


class PatternError(ValueError):
    """A pattern that cannot be used; the message is a sentence.

    PatternError
    ├── BadPattern   it is not a regular expression, or too large a one
    └── SlowPattern  it took too long and was stopped
    """


class BadPattern(PatternError):
    """The text is not a regular expression, or exceeds a limit."""


class SlowPattern(PatternError):
    """Compiling or searching took too long and was stopped."""


class Match(Struct, frozen=True):
    """Where a pattern matched."""

    text: str
    start: int
    end: int
    sub: str | None = None
    """The group named `sub`, else the last group; None without groups or where it took no part."""


Spans = tuple[int, int, int, int]


class PatternAnswer(Struct, frozen=True):
    """What a process found: no spans and no problem where nothing matches."""

    spans: Spans | None = None
    """Start and end of the match, and of the group that `Match.sub` means; -1 where it took no part."""
    seconds: float = 0.0
    """Processor time that it took."""
    invalid: str = ""
    """What is wrong with the pattern."""
    stopped: str = ""
    """Why there is no answer."""


Runner = Callable[[Engine, str, str | None, float], PatternAnswer]
"""Search a text, or compile only where it is None, in a process that is killed after these seconds of processor time."""

_runners: list[Runner] = []


def set_runner(runner: Runner) -> None:
    """Set what runs patterns in a process of their own; without one, look-around is refused."""
    _runners[:] = [runner]


class _Budget:
    def __init__(self, seconds: float) -> None:
        self.left = seconds


_budget: ContextVar[_Budget | None] = ContextVar("pattern_budget", default=None)


@contextmanager
def pattern_budget(seconds: float = SECONDS_IN_ALL) -> Iterator[None]:
    """Limit the time of all patterns within; one budget inside of another spends the outer one."""
    token = _budget.set(_budget.get() or _Budget(seconds))
    try:
        yield
    finally:
        _budget.reset(token)


class Pattern(Struct, frozen=True):
    """A pattern that compiles."""

    text: str
    source: str
    compiled: Any = None
    """RE2's own; None where RE2 lacks something."""
    size: int = 0
    """Instructions of RE2's program."""
    group: int = 0
    """The group of `Match.sub` where RE2 searches, 0 without groups."""

    @property
    def linear(self) -> bool:
        """Whether RE2 runs it."""
        return self.compiled is not None

    def search(self, text: str) -> Match | None:
        """Return the first match, or None. Raises `SlowPattern`."""
        spans = self._spans(text if text.isascii() else _encodable(text))
        if spans is None:
            return None
        start, end, first, last = spans
        return Match(text[start:end], start, end, text[first:last] if first >= 0 else None)

    def _spans(self, text: str) -> Spans | None:
        if self.compiled is None:
            return _answer("regex", self.text, self.source, text).spans
        if self.size * len(text) > _MOST_WORK:
            return _answer("re2", self.text, self.source, text).spans
        match = self.compiled.search(text)
        if match is None:
            return None
        return (*match.span(), *(match.span(self.group) if self.group else (-1, -1)))


def _encodable(text: str) -> str:
    """Return the text with `?` for each half of a surrogate pair, which UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


# Each of RE2's may hold 2 MB.
@lru_cache(maxsize=64)
def compile_pattern(text: str, *, javascript: bool = False) -> Pattern:
    """Return the pattern, ready to search; RE2's syntax, or JavaScript's.

    Raises `BadPattern` with what is wrong with it, `SlowPattern` where that took too long to find out.
    """
    _check_length(text)
    source = from_javascript(text) if javascript else text
    linear = _linear(source)
    if linear is not None:
        group = linear.groupindex.get("sub", linear.groups)
        return Pattern(text, source, linear, linear.programsize, group)
    _check_repeats(text, source)
    # As RE2 reads it: `$` is the very end.
    source = _ending_last(source)
    _answer("regex", text, source, None)
    return Pattern(text, source)


def _check_length(text: str) -> None:
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise BadPattern("The pattern contains an unpaired surrogate. Write the whole character.") from None
    if length > LONGEST:
        raise BadPattern(
            f"The pattern '{text[:40]}…' has {length} bytes; {LONGEST} are allowed. Split it into several."
        )


def _check_repeats(text: str, source: str) -> None:
    repeats = largest_repeat(source)
    if repeats > MOST_REPEATS:
        raise BadPattern(
            f"'{text}' repeats something {repeats} times, counting nested repetitions; {MOST_REPEATS} are allowed. "
            "Use smaller counts."
        )


def largest_repeat(source: str) -> int:
    """Return the largest product of counts that are nested in each other, 1 without any."""
    groups = [1]
    atom = 1
    for piece in _PIECE.findall(source):
        if counts := _NUMBER.findall(piece) if piece[0] == "{" else []:
            # Nine digits exceed every limit.
            atom *= max(int(count[:9]) for count in counts)
        elif piece[0] == "(":
            groups.append(1)
            atom = 1
        elif piece == ")" and len(groups) > 1:
            atom = groups.pop()
        elif piece not in "?+*":
            atom = 1
        groups[-1] = max(groups[-1], atom)
    return max(groups)


def _answer(engine: Engine, text: str, source: str, searched: str | None) -> PatternAnswer:
    """Return the answer of a separate process. Raises `BadPattern` and `SlowPattern`."""
    if not _runners:
        raise BadPattern(
            f"'{text}' uses look-around or back-references, which cannot run here. Write it without."
        )
    budget = _budget.get()
    allowed = min(SECONDS, budget.left) if budget else SECONDS
    if allowed <= 0:
        raise SlowPattern(
            f"The pattern '{text}' was not run: patterns took {SECONDS_IN_ALL:g} s in all before it."
        )
    answer = _runners[0](engine, source, searched, allowed)
    if budget:
        budget.left -= answer.seconds
    if answer.invalid:
        raise BadPattern(f"'{text}' is not a regular expression: {answer.invalid.rstrip('.')}.")
    if answer.stopped:
        raise SlowPattern(f"The pattern '{text}' was stopped: {answer.stopped}")
    return answer


def _linear(text: str) -> Any:
    """Return what RE2 makes of the pattern; None where it lacks something, or the pattern is bad."""
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error:
        return None


def _ending_last(text: str) -> str:
    """Return the pattern with each `$` outside a class as the end of the text, also before a line's end."""
    if _MULTILINE.search(text):
        return text
    return "".join(r"\Z" if piece == "$" else piece for piece in _PIECE.findall(text))


def required_literal(text: str) -> str:
    """Return characters that every match of the pattern holds, or nothing where that is not certain.

    Used to pass over most lines of a long transcript without looking closer.
    """
    if _UNCERTAIN.search(text):
        return ""
    runs = [""]
    depth = 0
    for piece in _PIECE.findall(text):
        if piece[0] in "*?{" and depth == 0:
            runs[-1] = runs[-1][:-1]
        depth += (piece[0] == "(") - (piece == ")")
        literal = piece[-1] if depth == 0 and _LITERAL.fullmatch(piece) else ""
        runs[-1:] = [runs[-1] + literal] if literal else [runs[-1], ""]
    return max(runs, key=len)


def leading_word(text: str) -> str:
    """Return the word that every match begins with, such as a program's name; empty where that is not certain."""
    match = _LEADING_WORD.match(text)
    return "" if match is None or _UNCERTAIN.search(text) else match["word"].replace("\\", "")


_LEADING_WORD = re.compile(
    r"""(?:\^|\\b|\(\?P<\w+>|\(\?:|\(|\[\^?\W?\]|(?:\\?\.)?(?:\\)?/|\\S\*/|\)\?|\?|\.\*)*
    (?P<word>(?:\w|\\?-|\\\.)+)
    (?=\)?(?:\ |\\s|\\b|\[\ |\Z|\(\?:\\s|\(\?:\ ))""",
    re.VERBOSE,
)
# Alternatives, flags, look-around, and escapes that match other characters than they show.
_UNCERTAIN = re.compile(r"\||\(\?(?!P<|:)|\\[\dxpPNuUQ]")
_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
# A class that nothing closes ends with the text, so that its start is not tried again and again.
_PIECE = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*(?:\]|\Z)|\(\?P<\w+>|\(\?:|\{\d*,?\d*\}|.", re.DOTALL)
_NUMBER = re.compile(r"\d+")
_LITERAL = re.compile(r"[\w/-]|\\[^\w\s]")


_LINE_ENDS = "\n\r\u2028\u2029"
_WHITE = [(ord(one), ord(one)) for one in sorted(WHITE_SPACE)]
_LAST = 0x10FFFF

_JS_PATTERN_PIECE = re.compile(
    r"\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\c[a-zA-Z]|\\k<[^>]*>"
    r"|\[\^?\]|\\.|.",
    re.DOTALL,
)
_OWN_ESCAPES = frozenset("bBdDfnprPstSvwWx123456789")
"""Escapes that mean more than their character, and are read alike everywhere or translated below."""


def from_javascript(text: str) -> str:
    """Return the pattern that RE2 and its replacement match as JavaScript matches this one."""
    return "".join(_js_pattern_written(text))


def _js_pattern_written(text: str) -> Iterator[str]:
    inside = False
    for piece in _JS_PATTERN_PIECE.findall(text):
        if piece in ("[]", "[^]") and not inside:
            yield r"[^\s\S]" if piece == "[]" else r"[\s\S]"
            continue
        # Within a class the second bracket of these closes it.
        for part in (piece[:-1], "]") if inside and piece in ("[]", "[^]") else (piece,):
            yield _in_class(part) if inside else _outside(part)
            inside = part != "]" if inside else part == "["


def _outside(piece: str) -> str:
    if piece == ".":
        return f"[^{_LINE_ENDS}]"
    if piece in (r"\s", r"\S"):
        return f"[{_white()}]" if piece == r"\s" else f"[^{_white()}]"
    return f"(?P={piece[3:-1]})" if piece.startswith(r"\k<") else _escape(piece)


def _in_class(piece: str) -> str:
    if piece in (r"\s", r"\S"):
        return _white() if piece == r"\s" else _ranges(_others())
    if piece == r"\b":
        return r"\x08"
    return re.escape(piece) if piece in ("[", "[^") else _escape(piece)


def _escape(piece: str) -> str:
    """An escape as both engines read it; anything else stays."""
    if len(piece) < 2 or piece[0] != "\\" or piece[1] in _OWN_ESCAPES:
        return piece
    if piece[1] == "u" and len(piece) > 2:
        units = bytes.fromhex(piece.replace(r"\u", ""))
        return re.escape(units.decode("utf-16-be", "surrogatepass"))
    if piece[1] == "c" and len(piece) > 2:
        return f"\\x{ord(piece[2]) % 32:02x}"
    return r"\x00" if piece[1] == "0" else re.escape(piece[1])


def _white() -> str:
    return _ranges(_WHITE)


def _others() -> Iterator[tuple[int, int]]:
    borders = [(-1, -1), *_WHITE, (_LAST + 1, _LAST + 1)]
    return ((left[1] + 1, right[0] - 1) for left, right in pairwise(borders) if left[1] + 1 < right[0])


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"{_point(first)}-{_point(last)}" for first, last in ranges)


def _point(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else chr(code)
