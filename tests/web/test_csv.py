"""The tables of a page, as CSV at the same address."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.test import Client

from evalhub.teams.models import Project
from evalhub.web.csv_export import Table, csv_lines
from runs.models import CommandRecord, ModelPrice, Run
from scenarios.models import SuiteVersion
from tests.builders import close, make_compared, make_guidance, make_project, make_run, make_suite, make_trial
from tests.web.screen import parse

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
SignIn = Callable[..., Client]


def table(client: Client, address: str) -> list[dict[str, str]]:
    """Return the rows at an address, once its headers are those of a CSV download."""
    answer = client.get(address)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="')
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]  # a synchronous response
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.fixture
def compared(version: SuiteVersion) -> tuple[Run, Run]:
    base = make_compared(version, {"create": "pass", "export": "pass"}, trials=6)
    return base, make_compared(version, {"create": "fail", "export": "pass"}, trials=6, tags=["nightly"])


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-rf", "'-rf"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("\rx", '"\'\rx"'),
        ("a=1", "a=1"),
        ('a,"b"\nc', '"a,""b""\nc"'),
        ("token=abcdef123456", "token=[REDACTED]"),
        ("\ud800", "?"),
        (-1.5, "-1.5"),
        (0, "0"),
        (None, ""),
        (True, "true"),
        (datetime(2026, 11, 1, 14, 5, tzinfo=UTC), "2026-11-01T14:05:00Z"),
        (date(2026, 11, 1), "2026-11-01"),
    ],
)
def test_a_cell_is_raw_and_never_a_formula(value: Any, cell: str) -> None:
    assert list(csv_lines(Table("t", ("a", "b"), [(value, "x")]))) == ["a,b\r\n", f"{cell},x\r\n"]


@pytest.mark.parametrize("sign", ["\n=", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_line_feeds_and_full_width_signs_begin_no_formula(sign: str) -> None:
    (_, row) = csv.reader(csv_lines(Table("t", ("a",), [(f"{sign}1+1",)])))
    assert row == [f"'{sign}1+1"]


def test_the_runs_list_has_all_matching_runs(signed_in: SignIn, project: Project) -> None:
    small, other = (make_suite(project, ["one"], name=name) for name in ("small", "other"))
    for _ in range(60):
        make_run(small)
    make_run(other)
    rows = table(signed_in("viewer"), "/p/tools/runs/?suite=small&before=3&format=csv")
    # A place in the list is none in the file.
    assert len(rows) == 60
    assert {row["suite"] for row in rows} == {"small"}


def test_a_runs_row_holds_plain_numbers(signed_in: SignIn, compared: tuple[Run, Run]) -> None:
    row = table(signed_in("viewer"), "/p/tools/runs/?format=csv")[0]
    assert (row["run"], row["baseline"], row["tags"]) == (str(compared[1].pk), str(compared[0].pk), "nightly")
    assert (row["trials"], row["passed"], row["failed"], row["pass_rate"]) == ("12", "6", "6", "0.5")
    assert (row["baseline_pass_rate"], row["difference"]) == ("1.0", "-0.5")
    assert float(row["pass_rate_low"]) < 0.5 < float(row["pass_rate_high"])


def test_a_runs_scenarios_follow_the_chip(signed_in: SignIn, compared: tuple[Run, Run]) -> None:
    client, address = signed_in("viewer"), f"/p/tools/runs/{compared[1].pk}/"
    assert [row["scenario"] for row in table(client, f"{address}?format=csv")] == ["create", "export"]
    (row,) = table(client, f"{address}?show=worse&format=csv")
    assert (row["scenario"], row["passed"], row["failed"], row["baseline_passed"]) == (
        "create",
        "0",
        "6",
        "6",
    )
    assert row["reasons"].splitlines()[0] == "out.txt does not exist."


def test_a_comparisons_measures(signed_in: SignIn, compared: tuple[Run, Run]) -> None:
    address = f"/p/tools/compare/?runs={compared[0].pk},{compared[1].pk}&format=csv"
    first = table(signed_in("viewer"), address)[0]
    assert (first["measure"], first["base"], first["new"]) == ("trial/pass", "1.0", "0.5")
    assert (first["difference"], first["scenarios"], first["base_trials"]) == ("-0.5", "2", "12")


def test_a_comparisons_scenarios_follow_the_chip(signed_in: SignIn, compared: tuple[Run, Run]) -> None:
    address = f"/p/tools/compare/?runs={compared[0].pk},{compared[1].pk}&show=worse&format=csv"
    (row,) = table(signed_in("viewer"), f"{address}&table=scenarios")
    assert (row["scenario"], row["difference"], row["comparable"]) == ("create", "-1.0", "true")


def test_two_guidance_versions_have_measures_and_scenarios(signed_in: SignIn, version: SuiteVersion) -> None:
    poor, good = (make_guidance(version.suite, name) for name in ("poor", "good"))
    for guidance, outcome in ((poor, "fail"), (good, "pass")):
        run = make_run(version, guidance=guidance, tool_version="2")
        for key in ("create", "export"):
            for _ in range(3):
                make_trial(run, key, outcome=outcome)
        close(run)
    client, address = signed_in("viewer"), f"/p/tools/guidance/{poor.pk}/against/{good.pk}/?format=csv"
    first = table(client, address)[0]
    assert (first["measure"], first["a"], first["b"], first["a_trials"]) == ("trial/pass", "0.0", "1.0", "6")
    rows = table(client, f"{address}&table=scenarios")
    assert [(row["scenario"], row["difference"]) for row in rows] == [("create", "1.0"), ("export", "1.0")]


def test_a_trials_commands(signed_in: SignIn, version: SuiteVersion) -> None:
    trial = make_trial(make_run(version))
    CommandRecord.objects.create(trial=trial, n=0, line="-rm --token=abcdef123456", exit_code=2, failed=True)
    (row,) = table(signed_in("viewer"), f"/p/tools/trials/{trial.pk}/?format=csv")
    assert (row["n"], row["command"], row["exit_code"], row["failed"]) == (
        "0",
        "'-rm --token=[REDACTED]",
        "2",
        "true",
    )


@pytest.mark.parametrize("address", ["runs/", "runs/{run}/", "compare/?runs={base},{run}"])
def test_each_page_links_its_csv(signed_in: SignIn, compared: tuple[Run, Run], address: str) -> None:
    client, (base, run) = signed_in("viewer"), compared
    place = f"/p/tools/{address.format(run=run.pk, base=base.pk)}"
    links = parse(client.get(place)).links
    found = [link for name, link in links.items() if name.endswith(", CSV")]
    assert found
    for link in found:
        query = link.partition("?")[2]
        assert "format=csv" in query
        assert table(client, f"{place.partition('?')[0]}?{query}")


def test_strangers_get_no_csv(signed_in: SignIn, compared: tuple[Run, Run]) -> None:
    stranger = signed_in("admin", make_project("other"))
    assert stranger.get("/p/tools/runs/?format=csv").status_code == 404
    assert Client().get("/p/tools/runs/?format=csv").status_code == 302


def test_an_unknown_table_is_not_found(signed_in: SignIn, compared: tuple[Run, Run]) -> None:
    address = f"/p/tools/runs/{compared[1].pk}/?format=csv&table=none"
    assert signed_in("viewer").get(address).status_code == 404


def test_prices_are_csv_too(signed_in: SignIn, project: Project) -> None:
    ModelPrice.objects.create(project=project, model="m", input_per_million=1.5, output_per_million=2)
    (row,) = table(signed_in("viewer"), "/p/tools/settings/prices/?format=csv")
    assert row["input_per_million"] == "1.5"


def test_other_pages_have_no_csv(signed_in: SignIn, compared: tuple[Run, Run]) -> None:
    client = signed_in("admin")
    for address in ("trends", "regressions", "suites", "targets", "settings"):
        page = client.get(f"/p/tools/{address}/?format=csv")
        assert page["Content-Type"].startswith("text/html") and ", CSV" not in parse(page), address
