"""Prepared queries give what the ORM's own give, for any values, and refuse what they cannot carry out."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    CharField,
    DecimalField,
    F,
    FloatField,
    Func,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Cast, Coalesce
from django.test.utils import CaptureQueriesContext

from evalhub.teams.models import AuditEvent, Membership, Project, note
from evalhub.web.prepared import prepared
from tests.builders import make_member, make_project

pytestmark = pytest.mark.django_db


@prepared
def _named(slug: str, least: int = 0) -> QuerySet[Project]:
    return Project.objects.filter(slug=slug, pk__gt=least)


@prepared
def _among(keys: tuple[int, ...], also: int) -> QuerySet[Project, str]:
    return Project.objects.filter(Q(pk__in=keys) | Q(pk=also)).order_by("pk").values_list("slug", flat=True)


@prepared
def _members(project: int) -> QuerySet[Membership]:
    return Membership.objects.select_related("project", "user").filter(project=project)


def _plain(value: Any) -> tuple[type, Any]:
    """Return a value with its type; the driver may give bytes as a view of them."""
    return (bytes, bytes(value)) if isinstance(value, memoryview) else (type(value), value)


def _distinct() -> QuerySet[Project, int]:
    # PostgreSQL has to select what it sorts by; nobody reads that.
    return Project.objects.order_by("slug").values_list("pk", flat=True).distinct()


def _values() -> QuerySet[AuditEvent, Any]:
    at = Coalesce("at", "at")
    return AuditEvent.objects.order_by("pk").values_list("at", at, "detail", "detail__part", "subject")


def _of_every_kind() -> QuerySet[Project, Any]:
    return Project.objects.values_list(
        Cast(Value("1.25"), DecimalField(max_digits=6, decimal_places=3)),
        Cast(Value("2.5"), FloatField()),
        Value(True, output_field=BooleanField()),
        Value(bytes(range(256)), output_field=BinaryField()),
        Value(None, output_field=CharField()),
        Value(2**40, output_field=BigIntegerField()),
        "created",
    )


class TestItsRows:
    def test_values_of_every_kind_are_what_the_orm_gives(self) -> None:
        make_project("one")
        rows = prepared(_of_every_kind)()
        assert [[*map(_plain, row)] for row in rows] == [[*map(_plain, row)] for row in _of_every_kind()]

    @pytest.mark.parametrize(
        "detail", [{}, {"part": None}, {"part": [1.5, "ü"]}, {"part": "text", "n": 2**70}]
    )
    def test_moments_and_json_are_what_the_orm_gives(self, detail: Any) -> None:
        note(make_project("one"), None, "suite.upload", "it", **detail)
        assert prepared(_values)() == list(_values())

    def test_json_that_the_standard_does_not_allow_is_read_as_django_does(self) -> None:
        # PostgreSQL does not take half of a pair.
        half = "\ud800" if connection.vendor == "sqlite" else "half"
        note(make_project("one"), None, "suite.upload", "it", part=half)
        found = AuditEvent.objects.values_list("detail", flat=True)
        assert prepared(lambda: found)() == [{"part": half}]

    def test_values_change_and_the_statement_stays(self) -> None:
        first, second = make_project("first"), make_project("second")
        assert _named("first") == [first]
        assert _named("second") == [second]
        assert _named("third") == []

    def test_another_number_of_arguments_is_another_statement(self) -> None:
        project = make_project("one")
        assert _named("one") == [project]
        assert _named("one", project.pk) == []

    @pytest.mark.parametrize("n", range(6))
    def test_a_list_may_have_any_length(self, n: int) -> None:
        projects = [make_project(f"p{each}") for each in range(7)]
        keys = tuple(each.pk for each in projects[:n])
        assert _among(keys, projects[6].pk) == [*(each.slug for each in projects[:n]), "p6"]

    def test_nothing_is_among_nothing(self) -> None:
        @prepared
        def among(keys: tuple[int, ...]) -> QuerySet[Project]:
            return Project.objects.filter(pk__in=keys)

        make_project("one")
        assert among(()) == []

    def test_what_belongs_to_a_row_comes_with_it(self) -> None:
        project = make_project("one")
        user = make_member(project)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            [found] = _members(project.pk)
            assert (found.project, found.user, found.created) == (project, user, found.created)
        assert len(asked) == 1
        assert found.created == Membership.objects.get(pk=found.pk).created

    def test_they_are_the_same_when_somebody_looks_at_the_statements(self) -> None:
        project = make_project("one")
        make_member(project)
        seen = (_members(project.pk), _among((project.pk,), 0), prepared(_distinct)())
        assert seen == ([Membership.objects.get()], ["one"], [project.pk])
        with CaptureQueriesContext(connection):
            assert (_members(project.pk), _among((project.pk,), 0), prepared(_distinct)()) == seen

    def test_a_percent_sign_of_the_statement_stays_one(self) -> None:
        project = make_project("100%s")
        percent = Func(F("slug"), template="%(expressions)s || '%%%%s'", output_field=CharField())

        @prepared
        def with_percent(key: int) -> QuerySet[Project, Any]:
            return Project.objects.annotate(share=percent).filter(pk=key).values_list("share")

        assert with_percent(project.pk) == [("100%s%s",)]

    def test_large_and_small_numbers_share_a_statement(self) -> None:
        project = make_project("one")
        assert [_named("one", least) for least in (0, 2**20, 2**40)] == [[project], [], []]

    def test_what_is_changed_afterwards_is_seen(self) -> None:
        project = make_project("one")
        assert _named("one")[0].name == project.name
        Project.objects.filter(pk=project.pk).update(name="Other")
        assert _named("one")[0].name == "Other"

    @pytest.mark.parametrize("key", [2**63, -(2**63) - 1, 10**30])
    def test_no_row_has_a_number_that_no_column_holds(self, key: int) -> None:
        assert _members(key) == []

    def test_a_value_is_never_part_of_the_statement(self) -> None:
        make_project("one")
        assert _named("one' OR '1'='1") == []


@prepared
def _not_named(least: int) -> QuerySet[Project, str]:
    return Project.objects.filter(pk__gt=least).exclude(name=ODD).values_list("slug", flat=True)


ODD = "it's 100%s, \\'; $1"


class TestWhatStaysTheSame:
    def test_it_is_compared_as_it_is(self) -> None:
        make_project("one")
        Project.objects.create(slug="odd", name=ODD)
        assert _not_named(0) == ["one"]

    @pytest.mark.skipif(connection.vendor != "postgresql", reason="Only PostgreSQL plans for any values.")
    def test_postgresql_knows_it_when_it_plans(self) -> None:
        _not_named(0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement, parameter_types::text FROM pg_prepared_statements")
            kept = [row for row in cursor.fetchall() if "100%s" in row[0]]
        assert [types for _, types in kept] == ["{bigint}"]


class TestWhatIsAskedAhead:
    """What it spares stands in test_postgresql.py; here, that nobody sees a difference."""

    @pytest.mark.django_db(transaction=True)
    def test_rows_are_the_same(self) -> None:
        project = make_project("one")
        member = Membership.objects.get(user=make_member(project))
        for _ in range(2):
            _members.ahead(project.pk)
            _among.ahead((project.pk,), 0)
            assert _named("one") == [project]
            assert _among((project.pk,), 0) == ["one"]
            [found] = _members(project.pk)
            assert (found, found.user, found.project) == (member, member.user, project)

    @pytest.mark.django_db(transaction=True)
    def test_what_is_changed_afterwards_is_seen(self) -> None:
        project = make_project("one")
        _named.ahead("one")
        assert _among((project.pk,), 0) == ["one"]
        Project.objects.filter(pk=project.pk).update(name="Other")
        assert _named("one")[0].name == "Other"

    def test_whoever_looks_at_the_statements_sees_each_once(self) -> None:
        project = make_project("one")
        with CaptureQueriesContext(connection) as asked:
            _members.ahead(project.pk)
            _named("one")
            _members(project.pk)
        assert len(asked) == 2

    @pytest.mark.django_db(transaction=True)
    def test_what_no_row_fits_is_not_asked(self) -> None:
        make_project("one")
        _members.ahead(2**63)
        prepared(lambda keys: Project.objects.filter(pk__in=keys)).ahead(())
        assert len(_named("one")) == 1


class TestWhatItRefuses:
    @pytest.mark.parametrize("value", [None, 1.5, True, ["a"], ("a",), (True,)])
    def test_values_of_other_types(self, value: Any) -> None:
        with pytest.raises(TypeError, match="takes numbers, texts and tuples of numbers"):
            _named(value)

    def test_arguments_by_name(self) -> None:
        for asked in (_named, _named.ahead):
            with pytest.raises(TypeError, match="_named takes its arguments by position"):
                asked(slug="one")

    def test_a_second_statement(self) -> None:
        @prepared
        def fetched(project: int) -> QuerySet[Project]:
            return Project.objects.filter(pk=project).prefetch_related("memberships")

        with pytest.raises(TypeError, match="cannot prefetch"):
            fetched(1)
