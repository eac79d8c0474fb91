"""Tags as text that a condition can look into."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, TextField
from django.db.models.sql.compiler import SQLCompiler


class TagLines(Func):
    """The texts of a JSON list, each between line feeds; empty for an empty list.

    The list's own text will not do: databases write quotes, backslashes and all but ASCII in it differently,
    and its brackets and commas are nobody's words.
    """

    arity = 1
    output_field = TextField()
    template = (
        "COALESCE((SELECT char(10) || group_concat(value, char(10)) || char(10)"
        " FROM json_each(%(expressions)s)), '')"
    )

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        """Return the same as PostgreSQL says it."""
        template = (
            "COALESCE((SELECT chr(10) || string_agg(value, chr(10)) || chr(10)"
            " FROM jsonb_array_elements_text(%(expressions)s)), '')"
        )
        return self.as_sql(compiler, connection, template=template, **context)
