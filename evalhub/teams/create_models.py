"""A migration's operation that creates many tables at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateModels(Operation):
    """Create the tables of `models`, which may refer to each other in any order.

    Django builds the classes of all related models again for each `CreateModel`; here it builds each class once.
    """

    serialization_expand_args: ClassVar[list[str]] = ["models"]

    def __init__(self, models: Sequence[CreateModel]) -> None:
        """Keep the operations whose tables are created together."""
        self.models = models

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Add the models to the state, without its classes: Django builds them when they are next asked for."""
        vars(state).pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Create the tables in their order; foreign keys are checked at the end of the migration."""
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Drop the tables, the last one first."""
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        """Return what `showmigrations` and `sqlmigrate` print of it."""
        return f"Create models {', '.join(model.name for model in self.models)}"

    def references_model(self, name: str, app_label: str) -> bool:
        """Return whether any of the models refers to one, as Django asks when it squashes migrations."""
        return any(model.references_model(name, app_label) for model in self.models)
