"""The search page over a million trials: common and rare words, phrases, beginnings and filters.

A generated history of 10,000 trials is copied within the database until there are a million: their texts repeat, as those
of real histories do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles

from tests.bench.figures import MANAGE, Figure, run
from tests.bench.pages import history, on_databases, served, signed_in

COPIES = 99
REQUESTS = 30
P50, P95 = 100.0, 250.0
SEARCHES = {
    "a common word": "json",
    "two common words": "json+limit",
    "a rare word": "needle",
    "a phrase": "%22unexpected+argument%22",
    "a beginning": "unexp%2A",
    "a common word, filtered": "json&outcome=fail&place=commands&suite=photo-library",
    "a common word, since a day": "json&since=2026-01-01",
    "no match": "absentword",
}
"""What is typed, as a query string."""

_COPY = f"""
from django.db import connection
from runs.models import SearchEntry, Trial
count, last = Trial.objects.count(), Trial.objects.order_by("-pk").values_list("pk", flat=True)[0]
for pk in Trial.objects.order_by("pk").values_list("pk", flat=True)[:3]:
    SearchEntry.objects.filter(pk=pk).update(answer="A needle in the haystack.")
trial = {{field.column for field in Trial._meta.concrete_fields}} - {{"id", "index", "scores", "detail"}}
names = ", ".join(f'"{{name}}"' for name in sorted(trial))
with connection.cursor() as cursor:
    for copy in range(1, {COPIES} + 1):
        offset = copy * last
        cursor.execute(
            f'INSERT INTO runs_trial (id, "index", scores, detail, {{names}})'
            f' SELECT id + {{offset}}, "index" + {{copy * 1000}}, \\'[]\\', \\'{{{{}}}}\\', {{names}} FROM runs_trial WHERE id <= {{last}}'
        )
        cursor.execute(
            'INSERT INTO runs_searchentry (trial_id, facets, commands, outputs, judge, answer)'
            f' SELECT trial_id + {{offset}}, facets, commands, outputs, judge,'
            f" CASE WHEN answer LIKE '%needle%' AND {{copy}} > 1 THEN '' ELSE answer END"
            f' FROM runs_searchentry WHERE trial_id <= {{last}}'
        )
    cursor.execute("ANALYZE")
"""


def search() -> Iterator[Figure]:
    """The search on SQLite and, where it is installed, on PostgreSQL."""
    yield from on_databases(_on)


def _on(vendor: str, database: Callable[[str], str]) -> Iterator[Figure]:
    with history("search", 100, 100, database("search")) as (data, env):
        _multiply(data, env)
        visitor = signed_in(data, env)
        with served(data, env):
            for name, query in SEARCHES.items():
                address = f"/p/demo-data/search/?q={query}"
                times = [visitor.milliseconds(address) for _ in range(REQUESTS)]
                yield Figure(f"{vendor}: search of a million trials, {name}, p50", median(times), "ms", P50)
                yield Figure(f"{vendor}: search, {name}, p95", quantiles(times, n=20)[-1], "ms", P95)


def _multiply(data: Path, env: dict[str, str]) -> None:
    copied = data / "copied"
    if env.get("DATABASE_URL") or not copied.exists():
        run([*MANAGE, "shell", "--no-imports", "-c", _COPY], data, **env)
        copied.touch()
