"""What is drawn once is drawn again as it was, and only where it could not be anything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from django.conf import settings
from django.template import engines
from django.utils.safestring import mark_safe
from jinja2 import Environment, nodes

from evalhub.web.drawn import LARGEST, ROOM
from runs.models import Run
from tests.web.test_templates import TEMPLATES

TELLS_THE_TIME = {"when", "ago"}
LOOKS_ELSEWHERE = {"untriaged", "current", "htmx_script", "drawn"}


NUMBERS = count()


class Drawings:
    """A template with a macro that counts how often it draws, and that is no other's: equal code is drawn once."""

    def __init__(self, body: str = "{{ counted() }}[{{ value }}]") -> None:
        self.drawn = 0
        env = engines["jinja2"].env.overlay()
        env.globals = {**env.globals, "counted": self._counted}
        self._template = env.from_string(
            f"{{% macro one(value) %}}{{% set apart = {next(NUMBERS)} %}}{body}{{% endmacro %}}"
            "{% for value in values %}{{ drawn(one, value) }}{% endfor %}"
        )

    def _counted(self) -> str:
        self.drawn += 1
        return ""

    def of(self, *values: Any) -> str:
        return self._template.render({"values": values})


@dataclass(frozen=True)
class Plain:
    at: datetime
    words: tuple[str, ...] = ()


@dataclass
class Changing:
    n: int = 0


def test_equal_values_are_drawn_once_over_all_pages():
    drawings = Drawings()
    assert drawings.of("a", "b", "a") == "[a][b][a]"
    assert drawings.of("b") == "[b]"
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert drawings.of(Plain(at, ("x",)), Plain(at, ("x",))).count("x") == 2
    assert drawings.drawn == 3


def test_different_values_and_macros_are_drawn_apart():
    drawings, others = Drawings(), Drawings("({{ value }})")
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert "y" in drawings.of(Plain(at, ("x",)), Plain(at, ("y",)))
    assert drawings.of("a") + others.of("a") == "[a](a)"


def test_what_is_drawn_is_escaped_once():
    assert Drawings().of("<b>", "<b>") == "[&lt;b&gt;][&lt;b&gt;]"


@pytest.mark.parametrize(
    "value",
    [Changing(), Run(), (1, Run()), Plain(at=Run()), ["a"], {"a": 1}],
    ids=["mutable", "model", "model within", "model in a field", "list", "dict"],
)
def test_values_that_can_change_are_refused(value):
    with pytest.raises(TypeError):
        Drawings().of(value)


def test_markup_is_refused_as_it_is_equal_to_text_that_is_none():
    with pytest.raises(TypeError, match="SafeString"):
        Drawings().of(mark_safe("<b>not drawn before</b>"))


def test_the_oldest_make_room_for_new_drawings():
    drawings = Drawings()
    drawings.of("first")
    # Each takes its own characters and as many of its drawing.
    long = [f"{n:05}" + "x" * (LARGEST // 2 - 10) for n in range(ROOM // LARGEST + 1)]
    drawings.of(*long)
    assert drawings.drawn == len(long) + 1
    drawings.of(long[-1], "first")
    assert drawings.drawn == len(long) + 2


@pytest.mark.parametrize(
    "body", ["{{ counted() }}{{ value }}", "{{ counted() }}a word"], ids=["long", "of long"]
)
def test_a_drawing_that_takes_much_room_is_not_kept(body):
    drawings = Drawings(body)
    drawings.of("x" * (LARGEST + 1), "x" * (LARGEST + 1))
    assert drawings.drawn == 2


def macros_drawn() -> Iterator[tuple[str, str, nodes.Macro]]:
    """Each macro that a template draws, and those that it uses: the template's name, the macro's, and the macro."""
    env = engines["jinja2"].env
    for name in map(str, TEMPLATES):
        tree = parsed(env, name)
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "drawn":
                macro = call.args[0]
                assert isinstance(macro, nodes.Name), name
                yield from with_those_it_uses(env, name, macro.name)


def with_those_it_uses(env: Environment, name: str, wanted: str) -> Iterator[tuple[str, str, nodes.Macro]]:
    macro = found(env, name, wanted)
    yield name, wanted, macro
    beside = {each.name for each in parsed(env, name).find_all(nodes.Macro)} - {wanted}
    for used in {each.name for each in macro.find_all(nodes.Name)} & beside:
        yield from with_those_it_uses(env, name, used)


def parsed(env: Environment, name: str) -> nodes.Template:
    return env.parse((settings.BASE_DIR / "templates" / name).read_text())


def found(env: Environment, template: str, wanted: str) -> nodes.Macro:
    tree = parsed(env, template)
    for macro in tree.find_all(nodes.Macro):
        if macro.name == wanted:
            return macro
    for brought in tree.find_all(nodes.FromImport):
        if wanted in brought.names:
            return found(env, brought.template.value, wanted)  # type: ignore[attr-defined]
    raise LookupError(wanted)


DRAWN = list(macros_drawn())


def test_lists_are_drawn():
    assert {macro for _, macro, _ in DRAWN} >= {"run_row", "point_row", "scenario", "trial_row"}


@pytest.mark.parametrize(("template", "_", "macro"), DRAWN, ids=[f"{a} {b}" for a, b, _ in DRAWN])
def test_a_macro_that_is_drawn_sees_nothing_but_its_arguments(template, _, macro):
    env = engines["jinja2"].env
    assert not list(macro.find_all((nodes.Include, nodes.FromImport, nodes.Import)))
    assert not {each.name for each in macro.find_all(nodes.Filter)} & TELLS_THE_TIME
    named = {each.name for each in macro.find_all(nodes.Name) if each.ctx == "load"}
    own = {each.name for each in macro.find_all(nodes.Name) if each.ctx in ("store", "param")} | {"loop"}
    beside = {each.name for each in parsed(env, template).find_all(nodes.Macro)}
    assert named - own - beside <= env.globals.keys() - LOOKS_ELSEWHERE
