"""Draws the data model from the models: `python -m tests.data_model_page` writes `docs/data-model.md`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/data-model.md"
APPS = {"teams": "People and projects", "scenarios": "Scenarios", "runs": "Runs"}
HEAD = """# Data model

What is stored, and what points to what; made from the models by `python -m tests.data_model_page`. An arrow leads from
a row to the row that it belongs to. What each model is for says its docstring in `evalhub/teams/models.py`,
`scenarios/models.py` and `runs/models/`.
"""


def relations(label: str) -> Iterator[tuple[str, str, str]]:
    """Yield model, model that it points to, and field of an app's foreign keys, in the order of the models."""
    from django.apps import apps

    for model in apps.get_app_config(label).get_models():
        for field in model._meta.get_fields():
            if field.concrete and (field.many_to_one or field.one_to_one) and field.related_model is not None:
                yield model.__name__, _name(field.related_model), field.name


def _name(model: object) -> str:
    return model if isinstance(model, str) else str(getattr(model, "__name__", model))


def models_of(label: str) -> list[tuple[str, str]]:
    """Return an app's models with the first line of their docstrings."""
    from django.apps import apps

    found = apps.get_app_config(label).get_models()
    return [(model.__name__, (model.__doc__ or "").strip().splitlines()[0]) for model in found]


def diagram(label: str) -> str:
    """Return an app's models as a diagram of Mermaid; several fields to one model share an arrow."""
    fields: dict[tuple[str, str], list[str]] = {}
    for model, other, field in relations(label):
        fields.setdefault((model, other), []).append(field)
    arrows = [f'  {model} }}o--|| {other} : "{", ".join(names)}"' for (model, other), names in fields.items()]
    alone = {name for name, _ in models_of(label)} - {name for pair in fields for name in pair}
    return "\n".join(["```mermaid", "erDiagram", *arrows, *(f"  {name}" for name in sorted(alone)), "```"])


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for label, title in APPS.items():
        rows = "\n".join(f"| `{name}` | {text} |" for name, text in models_of(label))
        parts.append(f"## {title}\n\n{diagram(label)}\n\n| model | what it is |\n| --- | --- |\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    PAGE.write_text(page(), encoding="utf-8")
