"""Templates: each can be compiled, and names nothing that no view gives."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.template import engines
from django.urls import clear_script_prefix, set_script_prefix
from django.utils.safestring import mark_safe
from jinja2 import nodes
from markupsafe import Markup


class Elsewhere(StaticFilesStorage):
    """Static files on another host."""

    def url(self, name: str | None, force: bool = False) -> str:
        return f"https://files.example/{name}"


TEMPLATES = sorted(
    path.relative_to(settings.BASE_DIR / "templates")
    for path in (settings.BASE_DIR / "templates").rglob("*.html")
)


@pytest.mark.parametrize("name", TEMPLATES, ids=str)
def test_it_compiles_and_calls_only_what_there_is(name):
    env = engines["jinja2"].env
    tree = env.parse((settings.BASE_DIR / "templates" / name).read_text())
    named = {node.node.name for node in tree.find_all(nodes.Call) if isinstance(node.node, nodes.Name)}
    macros = {each.name for each in tree.find_all(nodes.Macro)}
    brought = {each for found in tree.find_all(nodes.FromImport) for each in found.names}
    assert named - {"caller", "super"} - macros - brought <= env.globals.keys()
    env.compile(tree, str(name))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("<b title='\"'>&", "&lt;b title=&#39;&#34;&#39;&gt;&amp;"),
        (mark_safe("<b>"), "<b>"),
        (Markup("<b>"), "<b>"),
        (["<b>"], "[&#39;&lt;b&gt;&#39;]"),
        (1.5, "1.5"),
        (None, "None"),
    ],
)
def test_a_page_escapes_automatically(value, shown):
    engine = engines["jinja2"]
    assert engine.from_string("{{ value }}").render({"value": value}) == shown
    macro = "{% macro echo(value) %}{{ value }}{% endmacro %}{{ echo(value) }}"
    assert engine.from_string(macro).render({"value": value}) == shown
    assert (
        engine.from_string("{% set text %}{{ value }}{% endset %}{{ text }}").render({"value": value})
        == shown
    )


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("joined(1, 2)", "1-2"),
        ("joined(*[1, 2])", "1-2"),
        ("joined(1, second=2)", "1-2"),
        ("at.joined(1, 2)", "1-2"),
        ("joined(joined(1, 2), '<')", "1-2-&lt;"),
        ("from_macro(1, 2)", "1+2"),
        ("current('run')", " aria-current=&#34;page&#34;"),
    ],
)
def test_what_is_called_gets_its_arguments(call, shown, rf):
    request = rf.get("/")
    request.resolver_match = SimpleNamespace(url_name="run-list")

    def joined(first, second):
        return f"{first}-{second}"

    macro = "{% macro from_macro(first, second) %}{{ first }}+{{ second }}{% endmacro %}"
    page = engines["jinja2"].from_string(macro + "{% for _ in [0] %}{{ " + call + " }}{% endfor %}")
    context = {"joined": joined, "at": SimpleNamespace(joined=joined)}
    assert page.render(context, request).replace('"', "&#34;") == shown


def test_addresses_start_with_the_script_prefix(rf):
    page = engines["jinja2"].from_string("{{ url('run-list', 'one') }}")
    set_script_prefix("/below/")
    try:
        assert page.render({}, rf.get("/")) == "/below/p/one/runs/"
    finally:
        clear_script_prefix()
    assert page.render({}, rf.get("/")) == page.render() == "/p/one/runs/"


def test_the_forms_of_a_page_share_a_token(rf):
    page = engines["jinja2"].from_string("{{ csrf_token }} {{ csrf_input }}").render({}, rf.get("/"))
    token = page.split()[0]
    assert page == f'{token} <input type="hidden" name="csrfmiddlewaretoken" value="{token}">'
    assert len(token) == 64


def test_every_form_that_posts_has_the_token():
    for path in TEMPLATES:
        text = (settings.BASE_DIR / "templates" / path).read_text(encoding="utf-8")
        for form in re.findall(r"<form\b[^>]*method=.post.*?</form>", text, re.DOTALL):
            assert "{{ csrf_input" in form, path


@pytest.mark.parametrize("turn", [1, 2])
def test_a_static_file_has_the_name_that_its_storage_gives(settings, turn):
    page = engines["jinja2"].from_string("{{ static('css/base.css') }}")
    assert page.render() == "/static/css/base.css"
    other = {"BACKEND": "tests.web.test_templates.Elsewhere"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": other}
    assert page.render() == "https://files.example/css/base.css"
