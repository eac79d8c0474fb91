"""What people send while they review."""

from __future__ import annotations

from typing import Any

from django import forms

from evalhub.lib.limits import LONGEST_REASON
from evalhub.web.forms import SentenceForm
from runs.models.judging import ReviewWord
from runs.models.review import Right
from runs.review.statement_groups import Reference

MOST_REFERENCES = 200


class NoteForm(SentenceForm):
    """A note that belongs to a decision."""

    note = forms.CharField(required=False, max_length=LONGEST_REASON)


class StatementForm(NoteForm):
    """An opinion of one or several statements."""

    word = forms.ChoiceField(choices=ReviewWord.choices)
    refs = forms.CharField(max_length=20_000)

    def clean_refs(self) -> list[Reference]:
        """Return the references."""
        references = [Reference.of(each) for each in self.cleaned_data["refs"].split(",")]
        known = [each for each in references if each is not None]
        if len(known) < len(references) or len(known) > MOST_REFERENCES:
            raise forms.ValidationError("These statements are unknown. Load the page again.")
        return known


class OverruleForm(SentenceForm):
    """A score or criterion of a trial, its new verdict or number, and the reason."""

    score = forms.RegexField(
        r"^\d{1,5}(:.{1,200})?$",
        error_messages={"invalid": "Choose a score.", "required": "Choose a score."},
    )
    verdict = forms.ChoiceField(choices=[("", ""), ("pass", "pass"), ("fail", "fail")], required=False)
    value = forms.FloatField(
        required=False, error_messages={"invalid": "The new score isn't a number. Give one from 0 to 1."}
    )
    reason = forms.CharField(max_length=LONGEST_REASON, required=False)

    def decision(self) -> dict[str, Any]:
        """Return what `overrule` takes."""
        position, _, criterion = self.cleaned_data["score"].partition(":")
        verdict = self.cleaned_data["verdict"]
        return {
            "position": int(position),
            "criterion": criterion,
            "passed": verdict == "pass" if verdict else None,
            "value": self.cleaned_data["value"],
            "reason": self.cleaned_data["reason"],
        }


class ResolutionForm(NoteForm):
    """Who was right."""

    right = forms.ChoiceField(choices=Right.choices)
