"""What templates can say: Jinja's environment with evalhub's filters and functions (docs/decisions/0007)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.template import defaultfilters
from django.utils.html import json_script
from django_htmx.jinja import htmx_script
from jinja2 import ChainableUndefined, Environment
from jinja2.compiler import CodeGenerator, Frame
from jinja2.nodes import Call, Expr, Name
from markupsafe import _escape_inner as escape  # type: ignore[attr-defined]  # what its `escape` makes Markup of

from evalhub.web import words
from runs.warehouse.alerts import untriaged

FILTERS: tuple[Callable[..., Any], ...] = (
    *(words.badge, words.cut, words.decimals, words.dots, words.format_name, words.in_json, words.line),
    *(words.measured, words.visible, words.when),
    *(words.duration, words.file_size, words.integer, words.money, words.percent),
    *(defaultfilters.date, defaultfilters.linebreaksbr, defaultfilters.pluralize, defaultfilters.urlencode),
    json_script,
)
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(words.current, words.interval, words.progress_bar, words.rate, words.score_bar, words.share_bar),
    *(words.spark, words.static, words.url),
    *(htmx_script, untriaged),
)


def escaped(value: object) -> str:
    """Return a value as it stands in a page: markup as it is, anything else escaped."""
    if type(value) is str:
        return escape(value)
    if hasattr(value, "__html__"):
        return str(value.__html__())
    return escape(str(value))


class QuickCodeGenerator(CodeGenerator):
    """Escapes without making Markup of each text, and calls functions that do not ask for the context by themselves.

    Jinja's way takes one more in ten instructions of a page with a table.
    """

    def _output_child_pre(self, node: Expr, frame: Frame, finalize: Any) -> None:
        if frame.eval_ctx.autoescape and not frame.eval_ctx.volatile and finalize.src is None:
            self.write("environment.escaped(")
        else:
            super()._output_child_pre(node, frame, finalize)

    def visit_Call(self, node: Call, frame: Frame, forward_caller: bool = False) -> None:
        if (
            forward_caller
            or node.kwargs
            or node.dyn_args
            or node.dyn_kwargs
            or self._asks_for_context(node.node)
        ):
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.visit(node.node, frame)
        self.write("(")
        for argument in node.args:
            self.visit(argument, frame)
            self.write(", ")
        self.write(")")

    def _asks_for_context(self, called: Expr) -> bool:
        return isinstance(called, Name) and hasattr(
            self.environment.globals.get(called.name), "jinja_pass_arg"
        )


class QuickEnvironment(Environment):
    """An environment whose templates escape quickly."""

    code_generator_class = QuickCodeGenerator
    escaped = staticmethod(escaped)


def environment(**options: Any) -> Environment:
    """Return the environment of all templates; `options` are those of Django's backend.

    What is not there is shown as nothing, also below it: pages show what others wrote, and much of that is optional.
    """
    made = QuickEnvironment(**options | {"undefined": ChainableUndefined})
    made.filters |= {each.__name__: each for each in FILTERS}
    made.globals |= {each.__name__: each for each in FUNCTIONS}
    made.tests["none"] = words.is_nothing
    return made
