"""What a card of the queue offers: three buttons, and the others once it is opened."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from runs.alerts.alert_page.alerts import AlertCard
from runs.compare.intended_changes import guidance_words
from runs.models.comparison import AlertKind, AlertState, state_label

CONFIRM, REVERT = "confirm", "revert"
SHOWN = 3
LABELS = {AlertState.ACKNOWLEDGED: "Acknowledge", AlertState.INVESTIGATING: "Investigate"}
"""Where a button and its state differ."""
TRIAGED = tuple(each for each in AlertState if each is not AlertState.UNTRIAGED)
BY_KIND: dict[str, tuple[str, ...]] = {
    AlertKind.AFTER_CHANGE: (
        AlertState.WONT_FIX,
        REVERT,
        AlertState.ACKNOWLEDGED,
        CONFIRM,
        AlertState.INVALID,
    )
}
"""What comes first, for kinds that differ from a regression."""
OF_REGRESSION = (AlertState.ACKNOWLEDGED, CONFIRM, AlertState.INVALID, AlertState.WONT_FIX)


@dataclass(frozen=True)
class CardButton:
    """One button of a card."""

    does: str
    """The state that it sets, `CONFIRM` or `REVERT`."""
    label: str
    key: str = ""
    """The key that presses it."""


@dataclass(frozen=True)
class CardButtons:
    """The buttons of a card: those that it shows, and those inside it."""

    shown: tuple[CardButton, ...]
    inside: tuple[CardButton, ...]


@dataclass(frozen=True)
class OfferedButtons:
    """Actions available to this role."""

    rights: Collection[str]

    def buttons_of(self, card: AlertCard) -> CardButtons:
        """Return what the person may do with an alert, the likeliest first."""
        order = BY_KIND.get(card.alert.kind, OF_REGRESSION)
        possible = [
            action for action in dict.fromkeys((*order, *TRIAGED)) if _is_possible(action, card, self.rights)
        ]
        buttons = tuple(_button(each, card) for each in possible)
        return CardButtons(buttons[:SHOWN], buttons[SHOWN:])


def _is_possible(does: str, card: AlertCard, rights: Collection[str]) -> bool:
    alert = card.alert
    if does == CONFIRM:
        return "run" in rights and alert.is_confirmable
    if does == REVERT:
        return "upload" in rights and card.is_revertible
    return "triage" in rights and does != alert.state


def _button(does: str, card: AlertCard) -> CardButton:
    if does == CONFIRM:
        return CardButton(does, "Confirm…", "c")
    if does == REVERT:
        guidance = card.alert.run.baseline.guidance if card.alert.run.baseline else None
        return CardButton(does, f"Revert to {guidance_words(guidance)}")
    key = "a" if does == AlertState.ACKNOWLEDGED else ""
    return CardButton(does, LABELS.get(AlertState(does)) or state_label(does, card.alert.kind), key)
