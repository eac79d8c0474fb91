"""A regression as Markdown, to paste into an issue."""

from __future__ import annotations

import re

from evalhub.lib.numbers import percent
from runs.alerts.alert_page.alerts import AlertCard, Lost
from runs.compare.shown_reference import reference_words

MOST = 20
"""Most scenarios that are listed."""


def alert_as_markdown(card: AlertCard, host: str) -> str:
    """Return a card as Markdown with links; `host` is the address of this server."""
    alert, run = card.alert, card.alert.run
    address = f"{host}{run.get_absolute_url()}"
    model = f" with {_plain(run.model)}" if run.model else ""
    parts = [
        f"## {_plain(card.title)}: {_plain(run.suite.name)} on {_plain(run.target.name)}{model}, [run {run.pk}]({address})",
        _evidence(card),
        "\n".join(f"- {_change(each)}" for each in card.regressed),
        _table(card.lost),
        "\n".join(
            f"- {difference.label}: {_plain(difference.before) or 'none'} → {_plain(difference.after) or 'none'}"
            for difference in card.differences
        ),
        _plain(alert.note),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _evidence(card: AlertCard) -> str:
    alert = card.alert
    if alert.drift:
        return f"**Drift**. {card.sentence}"
    side = reference_words(alert.run.old_side, alert.run.baseline_id)
    baseline = f"Compared with {side}." if alert.run.baseline_id else ""
    said = " ".join(filter(None, (baseline, card.sentence, alert.reason)))
    return f"**{alert.get_evidence_display()}**. {_plain(said)}".strip()


def _change(change: object) -> str:
    size, interval = getattr(change, "size", ""), getattr(change, "interval", "")
    return f"{getattr(change, 'label', '')} {size}{f' ({interval})' if interval else ''}, {getattr(change, 'worse', '')}"


def _table(lost: tuple[Lost, ...]) -> str:
    if not lost:
        return ""
    rows = [
        f"| {_plain(scenario.key)} | {percent(scenario.before)} | {percent(scenario.after)} | {_plain(scenario.reason)} |"
        for scenario in lost[:MOST]
    ]
    more = [f"\n{len(lost) - MOST} more scenarios."] if len(lost) > MOST else []
    return "\n".join(["| scenario | baseline | now | why |", "| --- | --- | --- | --- |", *rows, *more])


def _plain(text: str) -> str:
    """Return a text on one line in which Markdown finds no markup."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))
