"""What is drawn once is drawn again as it was, and only where it could not be anything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from django.template import engines
from django.utils.safestring import mark_safe
from jinja2 import Environment, nodes

from evalhub.web.drawn import LARGEST, MOST
from runs.models import Run
from tests.web.test_templates import TEMPLATES

TELLS_THE_TIME = {"when", "ago"}
LOOKS_ELSEWHERE = {"untriaged", "current", "htmx_script", "drawn"}


class Drawings:
    """A template with a macro that counts how often it draws."""

    def __init__(self, body: str = "{{ counted() }}[{{ value }}]") -> None:
        self.drawn = 0
        env = engines["jinja2"].env.overlay()
        env.globals = {**env.globals, "counted": self._counted}
        self._template = env.from_string(
            f"{{% macro one(value) %}}{body}{{% endmacro %}}"
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
        Drawings().of(mark_safe("<b>"))


def test_room_is_made_for_new_drawings_and_none_for_very_long_ones():
    drawings = Drawings()
    drawings.of("first")
    drawings.of(*map(str, range(MOST)))
    drawings.of("first")
    assert drawings.drawn == MOST + 2
    drawings.of("x" * LARGEST, "x" * LARGEST)
    assert drawings.drawn == MOST + 4


def macros_drawn() -> Iterator[tuple[str, str, nodes.Macro]]:
    """Each macro that a template draws: the template's name, the macro's, and the macro wherever it stands."""
    env = engines["jinja2"].env
    for name in map(str, TEMPLATES):
        tree = parsed(env, name)
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "drawn":
                macro = call.args[0]
                assert isinstance(macro, nodes.Name), name
                yield name, macro.name, found(env, name, macro.name)


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
    assert {macro for _, macro, _ in DRAWN} >= {"run_row", "point_row"}


@pytest.mark.parametrize("macro", [each for *_, each in DRAWN], ids=[f"{a} {b}" for a, b, _ in DRAWN])
def test_a_macro_that_is_drawn_sees_nothing_but_its_arguments(macro):
    env = engines["jinja2"].env
    assert not list(macro.find_all((nodes.Include, nodes.FromImport, nodes.Import)))
    assert not {each.name for each in macro.find_all(nodes.Filter)} & TELLS_THE_TIME
    named = {each.name for each in macro.find_all(nodes.Name) if each.ctx == "load"}
    own = {each.name for each in macro.find_all(nodes.Name) if each.ctx in ("store", "param")} | {"loop"}
    assert named - own <= env.globals.keys() - LOOKS_ELSEWHERE
