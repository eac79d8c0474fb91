"""A project's settings, members and tokens as they are typed in."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.text import slugify

from evalhub.teams.judge_models import judge_problem
from evalhub.teams.models import NotifyWhen, Priority, Project
from evalhub.teams.roles import Role
from evaluators.patterns import PatternError, compile_pattern
from evaluators.tool_use.diagnosis import Thresholds

ROLES = [(role, role) for role in Role.values]
DAYS = {"30": "in 30 days", "90": "in 90 days", "365": "in a year", "": "never"}


if TYPE_CHECKING:
    # Django's own class takes no parameter when it runs.
    ProjectModelForm = forms.ModelForm[Project]
else:
    ProjectModelForm = forms.ModelForm


_NAME_AND_THRESHOLD = re.compile(r"([a-z_]+)\s+(\d{1,6}(?:\.\d{1,9})?)")
_MEASURE_AND_EFFECT = re.compile(r"([a-z]+/\S{1,200})\s+(1(?:\.0*)?|0(?:\.\d{1,9})?)")


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


class ProjectForm(ProjectModelForm):
    """The project's defaults for new runs."""

    smallest_effect = forms.FloatField(
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "0.01"}),
        error_messages={"invalid": "Enter a number from 0 to 1, such as 0.05."},
    )

    most_trials = forms.IntegerField(
        min_value=1,
        max_value=100_000,
        required=False,
        error_messages={"invalid": "Enter a whole number, such as 20, or leave it empty for no limit."},
    )
    smallest_effects = forms.CharField(required=False, max_length=2_000)
    diagnosis_thresholds = forms.CharField(required=False, max_length=500)
    notify_when = forms.ChoiceField(choices=NotifyWhen.choices, label="Notify of alerts")
    alert_dearer = forms.BooleanField(required=False, label="Alert when trials cost more")
    alert_slower = forms.BooleanField(required=False, label="Alert when trials take longer")
    month_usd = forms.FloatField(
        min_value=0.0001,
        max_value=1_000_000,
        required=False,
        error_messages={
            "invalid": "Enter an amount in US dollars, such as 2.50, or leave it empty for no limit."
        },
    )
    judge_labels = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        required=False,
        error_messages={"invalid": "Enter a whole number, such as 30."},
    )
    judge_rate = forms.FloatField(
        min_value=0,
        max_value=1,
        required=False,
        error_messages={"invalid": "Enter a number from 0 to 1, such as 0.7."},
    )
    only_calibrated_judges = forms.BooleanField(required=False, label="Only calibrated judges decide")
    priority = forms.TypedChoiceField(choices=Priority.choices, coerce=int)

    class Meta:
        model = Project
        fields = [
            "name",
            "command_pattern",
            "judge",
            "smallest_effect",
            "smallest_effects",
            "most_trials",
            "priority",
            "notify_when",
            "alert_dearer",
            "alert_slower",
            "month_usd",
            "judge_labels",
            "judge_rate",
            "only_calibrated_judges",
            "diagnosis_thresholds",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in (
            "name",
            "judge",
            "smallest_effect",
            "smallest_effects",
            "most_trials",
            "command_pattern",
            "month_usd",
            "judge_labels",
            "judge_rate",
            "diagnosis_thresholds",
        ):
            self.fields[name].widget.attrs["aria-describedby"] = f"{name}-note"
        self.fields["judge"].widget.attrs["list"] = "offered-judges"
        for field in ("smallest_effects", "diagnosis_thresholds"):
            named = sorted(getattr(self.instance, field).items())
            self.initial[field] = ", ".join(f"{name} {value:g}" for name, value in named)

    def clean_diagnosis_thresholds(self) -> dict[str, float]:
        """Return the thresholds by name, from text such as `error_rate 0.3, commands 20`."""
        documented, thresholds = Thresholds(), dict[str, float]()
        for part in _parts(self.cleaned_data["diagnosis_thresholds"]):
            match = _NAME_AND_THRESHOLD.fullmatch(part)
            if match is None or match[1] not in documented.__struct_fields__:
                names = ", ".join(documented.__struct_fields__)
                raise forms.ValidationError(
                    f"'{part}' is not a threshold with a number, such as error_rate 0.3. Thresholds are {names}."
                )
            is_count = isinstance(getattr(documented, match[1]), int)
            value = float(match[2])
            if (value < 1 or value % 1) if is_count else value > 1:
                wanted = "a whole number from 1" if is_count else "a number from 0 to 1"
                raise forms.ValidationError(f"{match[1]} must be {wanted}, not {match[2]}.")
            thresholds[match[1]] = int(value) if is_count else value
        return thresholds

    def clean_judge(self) -> str:
        """Return the judge's name. Raises for one that is neither a target's nor a model's."""
        name: str = self.cleaned_data["judge"].strip()
        if problem := judge_problem(name, set(self.instance.targets.values_list("name", flat=True))):
            raise forms.ValidationError(problem)
        return name

    def clean_smallest_effects(self) -> dict[str, float]:
        """Return the smallest effects by measure, from text such as `trial/cost_usd 0.2, judge/judge 0.1`."""
        effects: dict[str, float] = {}
        for part in _parts(self.cleaned_data["smallest_effects"]):
            match = _MEASURE_AND_EFFECT.fullmatch(part)
            if match is None:
                raise forms.ValidationError(
                    f"'{part}' is not a measure with a number from 0 to 1, such as trial/cost_usd 0.2."
                )
            effects[match[1]] = float(match[2])
        return effects

    def clean_judge_labels(self) -> int:
        """Return the labels that a calibrated judge needs, the default where none are given."""
        return int(self.cleaned_data["judge_labels"] or Project._meta.get_field("judge_labels").default)

    def clean_judge_rate(self) -> float:
        """Return the least lower bound of a calibrated judge, the default where none is given."""
        rate = self.cleaned_data["judge_rate"]
        return float(Project._meta.get_field("judge_rate").default if rate is None else rate)

    def clean_command_pattern(self) -> str:
        """Return the pattern. Raises for a text that isn't a regular expression."""
        pattern: str = self.cleaned_data["command_pattern"]
        try:
            compile_pattern(pattern)
        except PatternError as error:
            raise forms.ValidationError(
                f"{error} Enter a pattern that finds a command of the tool."
            ) from error
        return pattern


class MemberForm(forms.Form):
    """Somebody to let in."""

    # The page has three forms; a label belongs to the first field with its id.
    def __init__(self, data: Any = None, *, initial: Any = None) -> None:
        super().__init__(data, initial=initial, auto_id="member-%s")

    name = forms.CharField(max_length=150)
    role = forms.ChoiceField(choices=ROLES)


class InvitationForm(forms.Form):
    """Somebody to invite."""

    def __init__(self, data: Any = None, *, initial: Any = None) -> None:
        super().__init__(data, initial=initial, auto_id="invitation-%s")

    email = forms.EmailField(
        required=False,
        error_messages={"invalid": "This is not an e-mail address. Write one such as ada@example.org."},
    )
    role = forms.ChoiceField(choices=ROLES)


class NewProjectForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's own class takes no parameter
    """A new project: its name and its short name in addresses."""

    class Meta:
        model = Project
        fields = ["name", "slug"]
        labels = {"slug": "Short name"}
        help_texts = {"slug": "Part of its addresses: lower-case letters, digits and hyphens."}
        error_messages = {
            "slug": {
                "unique": "A project with this short name exists. Choose another.",
                "invalid": "Use letters, digits and hyphens only, such as our-tool.",
            }
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["slug"].required = False

    def clean_slug(self) -> str:
        """Return the short name, by default that of the name."""
        slug: str = self.cleaned_data["slug"] or slugify(self.cleaned_data.get("name", ""))[:50].strip("-")
        if not slug:
            raise forms.ValidationError("Enter a short name, such as our-tool.")
        return slug


class RoleForm(forms.Form):
    """Another role."""

    role = forms.ChoiceField(
        choices=ROLES,
        error_messages={"invalid_choice": "“%(value)s” is not a role. Choose one from the list."},
    )


class TokenForm(forms.Form):
    """A new token of the user."""

    def __init__(self, data: Any = None, *, initial: Any = None) -> None:
        super().__init__(data, initial=initial, auto_id="token-%s")

    name = forms.CharField(max_length=80)
    role = forms.ChoiceField(choices=ROLES)
    days = forms.ChoiceField(choices=list(DAYS.items()), required=False, initial="90")

    def expires(self) -> datetime | None:
        """Return when it ends, None for never."""
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days else None
