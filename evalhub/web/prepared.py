"""Queries whose SQL is built once: the ORM takes longer to write a statement than the database to carry it out.

    @prepared
    def _suites(project: int) -> QuerySet[Suite, tuple[str, str]]:
        return Suite.objects.filter(project=project).values_list("slug", "name")

    rows = _suites(project.pk)

The function is called once for each shape of its arguments, with stand-ins that are found again among the
statement's parameters; from then on the statement is carried out with the values that are given. Values are whole
numbers, texts and, for `__in`, tuples of whole numbers. A query must use each as it is, neither changed nor asked
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import update_wrapper
from itertools import count
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.query import FlatValuesListIterable, ValuesListIterable

from evalhub.web.converters import quick_converter
from evalhub.web.driver import ask_ahead, connected, select, written_for

Given = ParamSpec("Given")
Row = TypeVar("Row")
Value = int | str
LARGEST = 2**63 - 1
FIRST_NUMBER = -2_000_000_000
"""Where the stand-ins of numbers begin: no key is negative, and the smallest integer column holds it."""
PLAIN = (ValuesListIterable, FlatValuesListIterable)


class Plan:
    """One statement for one connection, with what Django's compiler finds out of its columns."""

    def __init__(self, queryset: Any, places: dict[Value, int]) -> None:
        if queryset._prefetch_related_lookups:
            raise TypeError("A prepared query carries out one statement, so it cannot prefetch.")
        self._model, self._read = queryset.model, queryset._iterable_class
        self._compiler = queryset.query.get_compiler(using=queryset.db)
        self._sql, self._parameters = self._compiler.as_sql()
        self._given = _given(self._parameters, places)
        self._for_driver, self._left = written_for(
            self._compiler.connection, self._sql, self._parameters, self._given
        )
        self._given_of_left = _given(self._left, places)
        columns = [column for column, _, _ in self._compiler.select[: self._compiler.col_count]]
        converters = self._compiler.get_converters(columns)
        self._quick = [
            (place, quick_converter(convert, column, self._compiler.connection))
            for place, (convert, column) in converters.items()
        ]
        self._compiler.get_converters = lambda expressions: converters
        self._compiler.apply_converters = self._converted
        composite = self._compiler.has_composite_fields(columns)
        self._compiler.has_composite_fields = lambda expressions: composite
        self._is_plain = self._read in PLAIN and not composite

    def rows(self, values: Sequence[Value]) -> list[Any]:
        """Return the statement's rows for values in the order of their stand-ins."""
        if self._is_plain:
            return self._plain(self._carried_out(values))
        compiler = copy(self._compiler)
        compiler.execute_sql = lambda *args, **options: [self._carried_out(values)]
        return list(self._read(Source(self._model, compiler)))

    def ask_ahead(self, values: Sequence[Value]) -> None:
        """Have the rows for these values come with those of the next statement."""
        database = connected()
        if not _is_watched(database):
            ask_ahead(database, self._for_driver, _filled_in(self._left, self._given_of_left, values))

    def _plain(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Return rows as `values_list` does, in half of the time that its readers take."""
        read = [*map(tuple, self._converted(rows, None))] if self._quick else rows
        return [row[0] for row in read] if self._read is FlatValuesListIterable else read

    def _converted(self, rows: Iterable[Sequence[Any]], converters: Any) -> Iterator[list[Any]]:
        """Return rows as Django's compiler does, which asks for each value of each row what it has to know once."""
        for row in rows:
            values = list(row)
            for place, convert in self._quick:
                values[place] = convert(values[place])
            yield values

    def _carried_out(self, values: Sequence[Value]) -> list[tuple[Any, ...]]:
        database = connected()
        if _is_watched(database):
            with database.cursor() as cursor:
                cursor.execute(self._sql, _filled_in(self._parameters, self._given, values))
                rows = cursor.fetchall()
        else:
            rows = select(database, self._for_driver, _filled_in(self._left, self._given_of_left, values))
        columns = self._compiler.col_count
        return [row[:columns] for row in rows] if self._compiler.has_extra_select else rows


def _is_watched(database: BaseDatabaseWrapper) -> bool:
    """Tell whether somebody looks at the statements, which only Django's cursors show."""
    return bool(database.queries_logged or database.execute_wrappers)


class Source:
    """What Django's row readers ask of a queryset and of its query."""

    def __init__(self, model: type[Model], compiler: Any) -> None:
        self.query, self.model, self.db = self, model, compiler.using
        self._compiler = compiler
        self._known_related_objects: dict[Any, Any] = {}

    def get_compiler(self, using: str | None = None) -> Any:
        """Return what carries the statement out."""
        return self._compiler


_plans: WeakKeyDictionary[Any, dict[Any, Plan | None]] = WeakKeyDictionary()


class Prepared(Generic[Given, Row]):
    """A query that is called with the arguments of the function which builds it; they go by position.

    No row fits a number that no column holds. It raises `TypeError` for arguments of other types.
    """

    def __init__(self, build: Callable[Given, QuerySet[Any, Row]]) -> None:
        self._build = build
        update_wrapper(self, build)

    def __call__(self, *args: Given.args, **named: Given.kwargs) -> list[Row]:
        """Carry the query out and return its rows."""
        plan, values = self._planned(args, named)
        return plan.rows(values) if plan else []

    def ahead(self, *args: Given.args, **named: Given.kwargs) -> None:
        """Have the query's rows come with those of the next query, for it will be called with these arguments.

        Waiting for a database server takes longer than what most queries take there. A request forgets what it asked
        for ahead as soon as it carries out anything but prepared queries.
        """
        plan, values = self._planned(args, named)
        if plan:
            plan.ask_ahead(values)

    def _planned(self, args: Sequence[Any], named: object) -> tuple[Plan | None, list[Value]]:
        if named:
            raise TypeError(f"{self._build.__name__} takes its arguments by position.")
        given = [_filled_up(value) if type(value) is tuple else value for value in args]
        key = (self._build, *map(_shape, given))
        plans = _plans.setdefault(connections[DEFAULT_DB_ALIAS], {})
        if key not in plans:
            plans[key] = _plan(self._build, given)
        values = [*_values(given)]
        fit = all(type(each) is not int or -LARGEST <= each <= LARGEST for each in values)
        return plans[key] if fit else None, values


def prepared(build: Callable[Given, QuerySet[Any, Row]]) -> Prepared[Given, Row]:
    """Return the query that a function builds, to be carried out again and again."""
    return Prepared(build)


def _plan(build: Callable[..., QuerySet[Any, Any]], args: Sequence[Any]) -> Plan | None:
    """Return how a query is carried out; None where Django knows that no row fits it."""
    numbers, places = count(), dict[Value, int]()

    def stand_in(value: Value) -> Value:
        number = next(numbers)
        name: Value = FIRST_NUMBER - number if isinstance(value, int) else f"stand-in {number} of evalhub"
        places[name] = number
        return name

    given = [tuple(map(stand_in, value)) if isinstance(value, tuple) else stand_in(value) for value in args]
    try:
        return Plan(build(*given), places)
    except EmptyResultSet:
        return None


def _filled_up(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers with the last one repeated up to a power of two: lists of any length share few statements."""
    missing = (1 << (len(numbers) - 1).bit_length()) - len(numbers) if numbers else 0
    return numbers + numbers[-1:] * missing


def _shape(value: Any) -> Any:
    """Return what the statement depends on: the type, and how many there are."""
    if type(value) is int or type(value) is str:
        return type(value)
    if type(value) is tuple and all(type(each) is int for each in value):
        return len(value)
    raise TypeError(f"A prepared query takes numbers, texts and tuples of numbers, not {value!r}.")


def _values(args: Sequence[Any]) -> Iterator[Value]:
    for value in args:
        if isinstance(value, tuple):
            yield from value
        else:
            yield value


def _given(parameters: Sequence[Any], places: dict[Value, int]) -> dict[int, int]:
    """Return which of a statement's parameters are stand-ins, each with the place of its value."""
    return {
        at: places[each]
        for at, each in enumerate(parameters)
        if isinstance(each, (int, str)) and each in places
    }


def _filled_in(parameters: Sequence[Any], given: dict[int, int], values: Sequence[Value]) -> list[Any]:
    filled = list(parameters)
    for at, place in given.items():
        filled[at] = values[place]
    return filled
