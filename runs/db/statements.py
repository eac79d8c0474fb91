"""The SQL that runs for every trial: the hot path of evalhub.

The ORM takes several times as long to build these statements as the database takes to execute them. Everything else
uses the ORM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from django.db import connection, models
from django.utils import timezone

from evalhub.lib.storable_text import make_storable, storable_json
from runs.labels import within_sql
from runs.models import Run, Target, Trial
from scenarios.models import ScenarioVersion

_NOW = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "EXTRACT(EPOCH FROM clock_timestamp())",
}


def claim_in_one_statement(
    run_id: int, token: str, worker: str, lease_seconds: float, labels: Sequence[str] = ()
) -> tuple[int, int, int, int] | None:
    """Claim the run's next queued trial for a worker with these labels; None when it gets none.

    Return the trial, its earlier starts, its scenario version and its index.
    """
    vendor = connection.vendor
    (started,) = _adapt(_adapters(vendor, Trial, ("started",)), {"started": timezone.now()})
    label_json = storable_json(list(labels))
    rows = _rows(_claim_sql(vendor), [token, lease_seconds, started, worker, run_id, run_id, label_json])
    return next(((trial, starts - 1, version, index) for trial, starts, version, index in rows), None)


def _claim_sql(vendor: str) -> str:
    lock = "FOR UPDATE SKIP LOCKED" if vendor == "postgresql" else ""
    table, runs, targets = (_table(model) for model in (Trial, Run, Target))
    mine = within_sql(vendor, f"{targets}.labels", _placeholder(vendor, Target, "labels"))
    return f"""
        UPDATE {table}
        SET state = 'running', token = %s, lease_until = {_NOW[vendor]} + %s, starts = starts + 1,
            started = %s, worker = %s
        WHERE id = (
            SELECT id FROM {table} WHERE run_id = %s AND state = 'queued' ORDER BY position LIMIT 1 {lock}
        ) AND state = 'queued' AND EXISTS (
            SELECT 1 FROM {runs} JOIN {targets} ON {targets}.id = {runs}.target_id WHERE {runs}.id = %s AND {mine}
        )
        RETURNING id, starts, scenario_version_id, "index"
    """  # noqa: S608 (constants and a quoted table name)


def scenario_content(version_id: int) -> tuple[str, int | None]:
    """Return a stored scenario version as JSON, and its fixture. Raises `ScenarioVersion.DoesNotExist`."""
    content, fixture = _read_columns(ScenarioVersion, version_id, ("content", "fixture"))
    return content, fixture


def run_values(run_id: int, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the named columns of a run. Raises `Run.DoesNotExist`."""
    return dict(zip(names, _read_columns(Run, run_id, names), strict=True))


def _read_columns(model: type[models.Model], key: int, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return columns of a row as the database stores them. Raises the model's `DoesNotExist`."""
    columns = ", ".join(_column(model, name) for name in names)
    for row in _rows(f"SELECT {columns} FROM {_table(model)} WHERE id = %s", [key]):  # noqa: S608 (quoted names)
        return row
    raise model.DoesNotExist(f"There is no {model._meta.verbose_name} {key}.")  # type: ignore[attr-defined]


def write_trial(trial_id: int, token: str, values: Mapping[str, Any]) -> bool:
    """Write a running trial's columns if it still has the token; return whether it has."""
    vendor, names = connection.vendor, tuple(values)
    parameters = _adapt(_adapters(vendor, Trial, names), values)
    with connection.cursor() as cursor:
        cursor.execute(_trial_sql(vendor, names), [*parameters, trial_id, token])
        return bool(cursor.rowcount == 1)


@cache
def _trial_sql(vendor: str, names: tuple[str, ...]) -> str:
    columns = ", ".join(f"{_column(Trial, name)} = {_placeholder(vendor, Trial, name)}" for name in names)
    table = connection.ops.quote_name(Trial._meta.db_table)
    return f"UPDATE {table} SET {columns} WHERE id = %s AND token = %s AND state = 'running'"  # noqa: S608


@cache
def blank(model: type[models.Model]) -> Mapping[str, Any]:
    """Return a row of default values, without the key, for `insert`."""
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    defaults = {field.name: field.get_default() for field in fields}
    # Database drivers don't know Django's choices.
    return {name: each.value if isinstance(each, Enum) else each for name, each in defaults.items()}


def insert(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, all with the same columns."""
    if rows:
        insert_storable(model, tuple(rows[0]), storable_rows(model, rows))


def storable_rows(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the values of rows, all with the same columns, as the database stores them. No query."""
    adapters = _adapters(connection.vendor, model, tuple(rows[0])) if rows else ()
    return [_adapt(adapters, row) for row in rows]


def insert_storable(model: type[models.Model], names: tuple[str, ...], rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows of values from `storable_rows` into the named columns."""
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_insert_sql(connection.vendor, model, names), rows)


@cache
def _insert_sql(vendor: str, model: type[models.Model], names: tuple[str, ...]) -> str:
    table = connection.ops.quote_name(model._meta.db_table)
    columns = ", ".join(_column(model, name) for name in names)
    places = ", ".join(_placeholder(vendor, model, name) for name in names)
    return f"INSERT INTO {table} ({columns}) VALUES ({places})"  # noqa: S608 (quoted names)


class RunCounters(NamedTuple):
    """A run after a result was counted on it."""

    open: int
    """Trials that have not ended."""
    launch: int
    max_usd: float | None


def count_result(
    run_id: int, trial_id: int, counter: str, *, tokens_in: int, tokens_out: int, cost_usd: float | None
) -> RunCounters:
    """Count a trial's result on its run: that of a later round's trial in its cost and tokens only."""
    parameters = [trial_id, tokens_in, tokens_out, cost_usd, cost_usd, cost_usd, trial_id, run_id]
    (row,) = _rows(_count_sql(connection.vendor, counter), parameters)
    return RunCounters(*row)


def _count_sql(vendor: str, counter: str) -> str:
    table = connection.ops.quote_name(Run._meta.db_table)
    column = _column(Run, counter)
    dollars = "%s::float8" if vendor == "postgresql" else "%s"
    cost = f"CASE WHEN {dollars} IS NULL THEN cost_usd ELSE COALESCE(cost_usd, 0) + {dollars} END"
    trial = f"FROM {connection.ops.quote_name(Trial._meta.db_table)} WHERE id = %s"
    counted = f"(SELECT CASE WHEN round > 0 THEN 0 ELSE 1 END {trial})"
    again = f"(SELECT CASE WHEN round > 0 THEN COALESCE({dollars}, 0) ELSE 0 END {trial})"
    return (
        f"UPDATE {table} SET open = open - 1, {column} = {column} + {counted}, "  # noqa: S608 (quoted names)
        f"tokens_in = tokens_in + %s, tokens_out = tokens_out + %s, cost_usd = {cost}, "
        f"retest_usd = retest_usd + {again} "
        "WHERE id = %s RETURNING open, launch_id, max_usd"
    )


def _rows(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a statement; SQLite finishes it only when the last one is read."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(model: type[models.Model], name: str) -> str:
    column: str = model._meta.get_field(name).column  # type: ignore[union-attr, assignment]  # every name is a column's
    return connection.ops.quote_name(column)


def _placeholder(vendor: str, model: type[models.Model], name: str) -> str:
    return (
        "%s::jsonb"
        if vendor == "postgresql" and isinstance(model._meta.get_field(name), models.JSONField)
        else "%s"
    )


Adapter = Callable[[Any], Any]


@cache
def _adapters(
    vendor: str, model: type[models.Model], names: tuple[str, ...]
) -> tuple[tuple[int, Adapter], ...]:
    """Return the columns whose values are adapted, by place, each with its function."""
    adapters = ((place, _adapter(vendor, model._meta.get_field(name))) for place, name in enumerate(names))
    return tuple((place, adapt) for place, adapt in adapters if adapt is not _same)


def _adapter(vendor: str, field: Any) -> Adapter:
    if isinstance(field, models.JSONField):
        return storable_json
    if isinstance(field, models.DateTimeField):
        return _sqlite_time if vendor == "sqlite" else _same
    return make_storable if isinstance(field, (models.CharField, models.TextField)) else _same


def _same(value: Any) -> Any:
    return value


def _sqlite_time(value: datetime | None) -> str | None:
    """Return a time as Django stores it in SQLite: naive, in UTC."""
    return None if value is None else str(value.astimezone(UTC).replace(tzinfo=None))


def _adapt(adapters: tuple[tuple[int, Adapter], ...], values: Mapping[str, Any]) -> list[Any]:
    row = list(values.values())
    for place, adapt in adapters:
        row[place] = adapt(row[place])
    return row
