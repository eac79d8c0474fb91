"""Parse a shell line into a tree of commands (POSIX, Shell Command Language, 2.9; Bash Reference Manual, 3.2).

Never rejects a line: a keyword without its end takes the rest, and text that is not shell becomes one command.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from evaluators.tool_use.shell_words import DEEPEST, Operator, Token, Word, split_words


class Simple(Struct, frozen=True):
    """A program or a builtin with its arguments and redirections."""

    words: tuple[Word, ...]


class Pipeline(Struct, frozen=True):
    """Commands joined by `|`, or one command behind `!`."""

    items: tuple[Node, ...]
    is_negated: bool = False


class Chain(Struct, frozen=True):
    """Commands joined by `&&` and `||`; `joiners` has one fewer."""

    items: tuple[Node, ...]
    joiners: tuple[str, ...]


class Statement(Struct, frozen=True):
    """One command of a list."""

    node: Node
    in_background: bool = False


class Statements(Struct, frozen=True):
    """A list of commands, one after the other: a line, a group, a subshell or a branch."""

    items: tuple[Statement, ...]
    is_hidden: bool = False
    """Whether its output goes elsewhere than to the terminal."""
    is_subshell: bool = False
    """Whether a separate shell runs it, which forgets its definitions."""


class If(Struct, frozen=True):
    """`if` with its branches: a condition and what follows it; the condition of `else` is None."""

    branches: tuple[tuple[Statements | None, Statements], ...]


class Loop(Struct, frozen=True):
    """`for`, `select`, `while` or `until`."""

    condition: Statements | None
    body: Statements


class CaseStatement(Struct, frozen=True):
    """`case` with its branches."""

    branches: tuple[Statements, ...]


class Function(Struct, frozen=True):
    """The definition of a function, which runs nothing."""

    name: str
    body: Node


class Test(Struct, frozen=True):
    """`[[ … ]]`."""


class Expanded(Struct, frozen=True):
    """A compound command behind the substitutions of its head and redirections, whose ends are unknown."""

    before: tuple[Node, ...]
    node: Node


class Leaf(Struct, frozen=True):
    """A simple command that `evaluators.tool_use.shell` has read: the index of its segment."""

    segment: int
    before: tuple[Node, ...] = ()
    """Its substitutions, which run first and have no part in its end."""


class Quiet(Struct, frozen=True):
    """What runs no program and succeeds: an assignment, or the definition of a function."""

    status_name: str = ""
    """The variable that it gives the status of the command before it, as `rc=$?` does."""
    part: str = ""
    """The part of a pipeline whose status that is, as in `rc=${PIPESTATUS[0]}`."""


class Repeated(Struct, frozen=True):
    """A command that a launcher runs any number of times."""

    launcher: str
    node: Node


Node = (
    Simple
    | Pipeline
    | Chain
    | Statements
    | If
    | Loop
    | CaseStatement
    | Function
    | Test
    | Expanded
    | Leaf
    | Quiet
    | Repeated
)


def parse(line: str, depth: int = 0) -> Statements:
    """Return the commands of one or more lines, at this depth in compound commands. Never raises."""
    return _Parser(split_words(line)).statements(frozenset(), depth)


class _Parser:
    """Reads tokens once, from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def operator(self) -> str:
        """Return the operator that is next; empty for a word and at the end."""
        token = self.peek()
        return token.text if isinstance(token, Operator) else ""

    def keyword(self) -> str:
        """Return the word that is next, if it may be a keyword."""
        token = self.peek()
        return token.value if isinstance(token, Word) and not (token.is_quoted or token.redirect) else ""

    def skip(self, *operators: str) -> None:
        while self.operator() in operators and self.peek() is not None:
            self.at += 1

    def take(self, keyword: str) -> bool:
        """Skip a keyword; return whether it was there."""
        has_keyword = self.keyword() == keyword
        self.at += has_keyword
        return has_keyword

    def statements(self, until: Collection[str], depth: int) -> Statements:
        """Read commands up to one of these keywords or operators, which stays."""
        statements: list[Statement] = []
        self.skip(";", "\n", "&")
        while self.peek() is not None and not self.ends(until):
            before = self.at
            node = self.chain(until, depth)
            in_background = self.operator() == "&"
            if node is not None:
                statements.append(Statement(node, in_background))
            if self.at == before:
                self.at += 1
            if ";;" in until:
                self.skip(";", "\n", "&")
            else:
                self.skip(";", ";;", "\n", "&")
        return Statements(tuple(statements))

    def ends(self, until: Collection[str]) -> bool:
        return (self.operator() or self.keyword()) in until if until else False

    def chain(self, until: Collection[str], depth: int) -> Node | None:
        items: list[Node] = []
        joiners: list[str] = []
        while True:
            node = self.pipeline(until, depth)
            if node is None:
                if joiners:
                    joiners.pop()
                break
            items.append(node)
            if (joiner := self.operator()) not in ("&&", "||"):
                break
            joiners.append(joiner)
            self.at += 1
            self.skip("\n")
        if len(items) < 2:
            return items[0] if items else None
        return Chain(tuple(items), tuple(joiners))

    def pipeline(self, until: Collection[str], depth: int) -> Node | None:
        is_negated = False
        while (word := self.keyword()) in ("!", "time") and not self.ends(until):
            is_negated ^= word == "!"
            self.at += 1
            if word == "time":
                self.take("-p")
        items: list[Node] = []
        while (node := self.command(until, depth)) is not None:
            items.append(node)
            if self.operator() != "|":
                break
            self.at += 1
            self.skip("\n")
        if len(items) == 1 and not is_negated:
            return items[0]
        return Pipeline(tuple(items), is_negated) if items else None

    def command(self, until: Collection[str], depth: int) -> Node | None:
        if depth < DEEPEST and not self.ends(until) and (node := self.compound(depth)) is not None:
            return node
        # Too deep: its commands are read without their subshell.
        self.skip("(")
        return self.simple()

    def compound(self, depth: int) -> Node | None:
        if self.operator() == "(":
            self.at += 1
            body = self.statements((")",), depth + 1)
            self.skip(")")
            return self.group(body, depth, is_subshell=True)
        match self.keyword():
            case "{":
                self.at += 1
                body = self.statements(("}",), depth + 1)
                self.take("}")
                return self.group(body, depth)
            case "if":
                return self.redirected(self.conditional(depth + 1), depth)
            case "while" | "until":
                self.at += 1
                condition = self.statements(("do",), depth + 1)
                return self.redirected(Loop(condition, self.body(depth + 1)), depth)
            case "for" | "select":
                head = self.head()
                return self.redirected(Loop(None, self.body(depth + 1)), depth, head)
            case "case":
                subject = self.words_up_to("in")
                return self.redirected(self.choice(depth + 1), depth, subject)
            case "[[":
                return expand(Test(), self.words_up_to("]]"), depth)
            case "function":
                return self.function(depth)
            case word if word.endswith("()") and len(word) > 2:
                return self.function(depth)
        return None

    def conditional(self, depth: int) -> If:
        branches: list[tuple[Statements | None, Statements]] = []
        closing = ("elif", "else", "fi")
        while self.keyword() in ("if", "elif"):
            self.at += 1
            condition = self.statements(("then", *closing), depth)
            self.take("then")
            branches.append((condition, self.statements(closing, depth)))
        if self.take("else"):
            branches.append((None, self.statements(("fi",), depth)))
        self.take("fi")
        return If(tuple(branches))

    def head(self) -> list[Word]:
        """Skip and return the words of `for NAME in …`."""
        words: list[Word] = []
        while self.keyword() != "do" and isinstance(token := self.peek(), Word):
            words.append(token)
            self.at += 1
        self.skip(";", "\n")
        return words

    def words_up_to(self, keyword: str) -> list[Word]:
        """Skip and return the words up to a keyword, and skip that."""
        words: list[Word] = []
        while (
            (token := self.peek()) is not None
            and not self.take(keyword)
            and self.operator() not in (";", "\n")
        ):
            words += [token] if isinstance(token, Word) else []
            self.at += 1
        return words

    def body(self, depth: int) -> Statements:
        self.take("do")
        body = self.statements(("done",), depth)
        self.take("done")
        return body

    def choice(self, depth: int) -> CaseStatement:
        branches: list[Statements] = []
        self.skip("\n")
        while self.peek() is not None and not self.take("esac"):
            self.pattern()
            branches.append(self.statements((";;", "esac"), depth))
            self.skip(";;", "\n")
        return CaseStatement(tuple(branches))

    def pattern(self) -> None:
        """Skip a branch's pattern, up to its `)`."""
        while (token := self.peek()) is not None and self.operator() not in ("\n", ";;"):
            self.at += 1
            if isinstance(token, Operator) and token.text == ")":
                return
            if isinstance(token, Word) and token.value.endswith(")"):
                return

    def function(self, depth: int) -> Function:
        if self.take("function") and self.peek() is None:
            return Function("", Statements(()))
        name = self.keyword().removesuffix("()")
        self.at += 1
        self.skip("\n")
        body = self.command((), depth + 1)
        return Function(name, body or Statements(()))

    def group(self, body: Statements, depth: int, *, is_subshell: bool = False) -> Node:
        words = self.redirections()
        return expand(Statements(body.items, any(map(hides_output, words)), is_subshell), words, depth)

    def redirected(self, node: Node, depth: int, head: Sequence[Word] = ()) -> Node:
        return expand(node, [*head, *self.redirections()], depth)

    def redirections(self) -> list[Word]:
        """Skip and return the redirections after a compound command."""
        words: list[Word] = []
        while isinstance(token := self.peek(), Word) and token.redirect:
            words.append(token)
            self.at += 1
        return words

    def simple(self) -> Simple | None:
        words: list[Word] = []
        while isinstance(token := self.peek(), Word):
            words.append(token)
            self.at += 1
        return Simple(tuple(words)) if words else None


def expand(node: Node, words: Sequence[Word], depth: int) -> Node:
    """Return a compound command with the substitutions of these words before it."""
    scripts = [script for word in words for script in word.scripts] if depth < DEEPEST else []
    if not scripts:
        return node
    return Expanded(tuple(Statements(parse(each, depth + 1).items, True, True) for each in scripts), node)


def hides_output(word: Word) -> bool:
    """Return whether a redirection takes standard output away, such as `>file`; `2>&1` and `>&2` do not."""
    text = word.value
    return word.redirect and text.lstrip("1&").startswith(">") and not text.lstrip("1").startswith(">&")


def hides_errors(word: Word) -> bool:
    """Return whether a redirection takes standard error away, such as `2>/dev/null` and `&>file`."""
    return word.redirect and word.value.startswith(("2>", "&>")) and not word.value.startswith("2>&")
