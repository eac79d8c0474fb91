"""Templates: each can be compiled, and names nothing that no view gives."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.template import engines
from jinja2 import meta

TEMPLATES = sorted(
    path.relative_to(settings.BASE_DIR / "templates")
    for path in (settings.BASE_DIR / "templates").rglob("*.html")
)


@pytest.mark.parametrize("name", TEMPLATES, ids=str)
def test_it_compiles(name):
    engines["jinja2"].env.get_template(str(name))


@pytest.mark.parametrize("name", TEMPLATES, ids=str)
def test_it_calls_only_what_there_is(name):
    env = engines["jinja2"].env
    source = (settings.BASE_DIR / "templates" / name).read_text()
    named = {
        node.node.name
        for node in env.parse(source).find_all(meta.nodes.Call)
        if isinstance(node.node, meta.nodes.Name)
    }
    assert named - {"super"} <= env.globals.keys()


def test_a_page_escapes_by_itself():
    assert engines["jinja2"].from_string("{{ text }}").render({"text": "<b>"}) == "&lt;b&gt;"


def test_the_forms_of_a_page_share_a_token(rf):
    page = engines["jinja2"].from_string("{{ csrf_token }} {{ csrf_input }}").render({}, rf.get("/"))
    token = page.split()[0]
    assert page == f'{token} <input type="hidden" name="csrfmiddlewaretoken" value="{token}">'
    assert len(token) == 64
