"""What templates can say: Jinja's environment with evalhub's filters and functions (docs/decisions/0007)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.dispatch import receiver
from django.template import defaultfilters
from django_htmx.jinja import htmx_script
from jinja2 import ChainableUndefined, Environment
from jinja2.compiler import CodeGenerator, Frame
from jinja2.nodes import Call, Const, Expr, Filter, Getattr, Include, Name, Node
from markupsafe import _escape_inner as escape  # type: ignore[attr-defined]  # what its `escape` makes Markup of

from evalhub.teams.models import Project
from evalhub.teams.pages import entered
from evalhub.web import words
from evalhub.web.anchors import anchor
from evalhub.web.coded import coded
from evalhub.web.drawn import drawn
from runs.warehouse.alerts import ask_untriaged, untriaged

FILTERS: tuple[Callable[..., Any], ...] = (
    *(words.badge, words.cut, words.dots, words.format_name, words.line, words.urlencode, words.visible),
    *(words.ago, words.timed, words.when),
    *(words.decimals, words.duration, words.file_size, words.integer),
    *(words.measured, words.money, words.percent, words.points),
    *(words.in_json, words.json_script),
    *(anchor, coded),
    *(defaultfilters.date, defaultfilters.linebreaksbr, defaultfilters.pluralize),
)
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(words.current, words.interval, words.length_bar, words.progress_bar, words.rate),
    *(words.score_bar, words.share_bar),
    *(words.spark, words.static, words.url),
    *(drawn, htmx_script, untriaged),
)


def escaped(value: object) -> str:
    """Return a value as it stands in a page: markup as it is, anything else escaped."""
    if type(value) is str:
        return escape(value)
    if hasattr(value, "__html__"):
        return str(value.__html__())
    return escape(str(value))


class QuickCodeGenerator(CodeGenerator):
    """Spares what evalhub's templates do not need; Jinja's way takes one more in four instructions of a long table."""

    def _output_child_pre(self, node: Expr, frame: Frame, finalize: Any) -> None:
        if not frame.eval_ctx.autoescape or frame.eval_ctx.volatile or finalize.src is not None:
            super()._output_child_pre(node, frame, finalize)
        else:
            # Making Markup of each text takes longer than escaping it.
            self.write("(" if self._is_markup(node) else "environment.escaped(")

    def visit_Call(self, node: Call, frame: Frame, forward_caller: bool = False) -> None:
        called = self._called(node.node, self.environment.globals)
        asks_for_context = hasattr(called, "jinja_pass_arg")
        if forward_caller or node.kwargs or node.dyn_args or node.dyn_kwargs or asks_for_context:
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.visit(node.node, frame)
        self.write("(")
        for argument in node.args:
            self.visit(argument, frame)
            self.write(", ")
        self.write(")")

    def visit_Getattr(self, node: Getattr, frame: Frame) -> None:
        # Most are attributes; what is none may be an item.
        self.write("(found if (found := getattr((owner := ")
        self.visit(node.node, frame)
        self.write(
            f"), {node.attr!r}, missing)) is not missing else environment.getattr(owner, {node.attr!r}))"
        )

    def visit_Include(self, node: Include, frame: Frame) -> None:
        if node.ignore_missing or not node.with_context or not isinstance(node.template, Const):
            super().visit_Include(node, frame)
            return
        # In one piece: each of the many would go through every template around it.
        self.writeline(f"template = environment.get_template({node.template.value!r}, {self.name!r})", node)
        values = f"context.get_all(), True, {self.dump_local_context(frame)}"
        self.simple_write(f"concat(template.root_render_func(template.new_context({values})))", frame)

    def _is_markup(self, node: Expr) -> bool:
        """Tell whether a value comes from a function that says it returns markup."""
        if isinstance(node, Filter):
            said = self.environment.filters.get(node.name)
        else:
            said = self._called(node.node, self.environment.globals) if isinstance(node, Call) else None
        return getattr(said, "__annotations__", {}).get("return") == "SafeString"

    @staticmethod
    def _called(node: Node, functions: Mapping[str, Any]) -> Any:
        return functions.get(node.name) if isinstance(node, Name) else None


class QuickEnvironment(Environment):
    """An environment whose templates escape quickly."""

    code_generator_class = QuickCodeGenerator
    escaped = staticmethod(escaped)


@receiver(entered)
def _ask_ahead(project: Project, **_: object) -> None:
    """Read for every page what its frame shows."""
    ask_untriaged(project)


def environment(**options: Any) -> Environment:
    """Return the environment of all templates; `options` are those of Django's backend.

    What is not there is shown as nothing, also below it: pages show what others wrote, and much of that is optional.
    """
    made = QuickEnvironment(**options | {"undefined": ChainableUndefined})
    made.filters |= {each.__name__: each for each in FILTERS}
    made.globals |= {each.__name__: each for each in FUNCTIONS}
    made.tests["none"] = words.is_nothing
    return made
