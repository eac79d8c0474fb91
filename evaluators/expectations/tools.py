"""Assertions on which tools were called (tool-forge eval runner, Assertion Execution 1 and 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.expectations.expect import NO_TOOLS, Expect
from evaluators.expectations.facts import HELD, Atom, Facts


def called(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The tools were called in exactly this order, as often as listed."""
    if expect.tools_called is None:
        return
    if facts.names == expect.tools_called:
        yield HELD
        return
    reordered = sorted(facts.names) == sorted(expect.tools_called)
    hint = (
        "The same tools were called in another order; toolsAcceptable takes any order." if reordered else ""
    )
    sentence = f"expected {_listed(expect.tools_called)} but called {_listed(facts.names)}"
    yield Atom("failed", sentence, hint=hint)


def acceptable(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The tools called are one of the sets; order and repetition do not count."""
    if expect.tools_acceptable is None:
        return
    if not expect.tools_acceptable:
        yield Atom("skipped", "skipped: there is no acceptable set")
        return
    if set(facts.names) in [_without_none(names) for names in expect.tools_acceptable]:
        yield HELD
        return
    sets = " or ".join(_listed(sorted(_without_none(names))) for names in expect.tools_acceptable)
    yield Atom("failed", f"expected {sets} in any order but called {_listed(facts.names)}")


def not_called(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """None of the tools was called."""
    for name in expect.tools_not_called or ():
        yield Atom("failed", f"{name} was called") if name in facts.names else HELD


def included(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """Each of the tools was called, among whatever else was."""
    for name in expect.tools_included or ():
        found = name in facts.names
        yield HELD if found else Atom("failed", f"expected {name} among {_listed(facts.names)}")


def no_errors(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """No call went wrong: by the stubs in stub mode, by its success where tools are executed, else a no-op."""
    if not expect.no_tool_errors:
        return
    if expect.stubs is not None:
        yield from _stubbed(expect.stubs, facts)
    elif facts.executes_tools:
        yield from _succeeded(facts)
    else:
        yield Atom("moot", "tools are not executed here, so they cannot fail")


def _stubbed(stubs: Sequence[str], facts: Facts) -> Iterator[Atom]:
    missing = [name for name in dict.fromkeys(facts.names) if name not in stubs]
    yield Atom("failed", f"no stub for {', '.join(missing)}") if missing else HELD


def _succeeded(facts: Facts) -> Iterator[Atom]:
    if not facts.calls:
        yield HELD
    for call in facts.calls:
        if call.success is None:
            yield Atom(
                "skipped", f"the call of {call.name} was skipped: it does not say whether it succeeded"
            )
        else:
            yield HELD if call.success else Atom("failed", f"{call.name} failed")


def _without_none(names: Sequence[str]) -> set[str]:
    return set() if set(names) == {NO_TOOLS} else set(names)


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"
