"""The audit log: what people changed, and the sentences that show it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from evalhub.teams.models import AuditEvent, Project
from evalhub.web.sanitize import mark_invisible, show_text

ACTIONS = {
    "alert.confirm": "asked to confirm the regression of",
    "alert.triage": "triaged the regression of",
    "annotation.add": "annotated trends:",
    "annotation.remove": "removed the annotation",
    "channel.change": "changed the notification channel",
    "channel.create": "added the notification channel",
    "channel.delete": "removed the notification channel",
    "channel.send-again": "sent again a message of the channel",
    "baseline.set": "marked as baseline",
    "baseline.unset": "removed the baseline",
    "guidance.adopt": "adopted guidance",
    "guidance.create": "added guidance",
    "guidance.rename": "renamed guidance",
    "guidance.revert": "reverted to guidance",
    "member.add": "added the member",
    "member.invite": "invited",
    "member.join": "accepted the invitation to",
    "member.uninvite": "withdrew the invitation of",
    "project.create": "created the project",
    "member.remove": "removed the member",
    "member.role": "set the role of",
    "price.add": "added the price of",
    "price.remove": "removed the price of",
    "project.change": "changed the settings of",
    "project.seed-manifest": "set the seed manifest",
    "diagnosis.review": "reviewed a diagnosis of",
    "disagreement.resolve": "resolved the disagreement of",
    "overrule": "overruled a score of",
    "overrule.undo": "put back a score of",
    "suite.change": "changed the settings of the suite",
    "results.import": "imported results from",
    "retention.prune": "pruned old data",
    "review": "reviewed",
    "run.cancel": "cancelled",
    "run.compare": "compared again",
    "run.grade-adopt": "adopted the new grades of",
    "run.grade-again": "graded again",
    "run.judge-adopt": "adopted the new judgings of",
    "run.judge-again": "judged again",
    "run.request": "started",
    "run.resume": "resumed",
    "run.more": "added trials for a comparison to",
    "run.retry": "retried the errors of",
    "run.separate": "queued runs to separate the causes of",
    "run.tags": "changed the tags of",
    "sessions.import": "imported sessions of",
    "sign-in.link": "signed in with a link",
    "suite.prove": "proved the suite",
    "suite.upload": "uploaded the suite",
    "target.accept": "accepted the target",
    "target.change": "changed the target",
    "target.check": "checked the target",
    "target.reject": "rejected the target",
    "target.remove": "removed the target",
    "target.try": "tried the target",
    "token.create": "created the token",
    "token.revoke": "revoked the token",
}
"""The text of each action; its subject follows."""


def append_event(
    project: Project | None, user: User | None, action: str, subject: object = "", **detail: Any
) -> AuditEvent:
    """Append an event to the audit log and return it."""
    return AuditEvent.objects.create(
        project=project,
        user=user,
        action=action,
        subject=str(subject)[:200],
        detail=detail,
    )


MORE = {
    "alert.triage": "as {state}",
    "baseline.set": "of {suite} on {target}",
    "guidance.adopt": "for {suite}",
    "guidance.create": "to {suite}",
    "guidance.revert": "of {suite}",
    "member.add": "as {role}",
    "member.role": "to {role}",
    "member.invite": "as {role}",
    "overrule": "({score})",
    "run.tags": "to {tags}",
    "suite.upload": "version {version}",
    "token.create": "with the role {role}",
}
"""What a sentence adds from an event's details."""


def describe_event(event: AuditEvent) -> str:
    """Return an event as a sentence. Expects its user to be loaded."""
    who = event.user.get_username() if event.user else "somebody"
    known = {name: ", ".join(map(str, v)) if isinstance(v, list) else v for name, v in event.detail.items()}
    try:
        more = MORE.get(event.action, "").format(**known)
    except KeyError:  # an event of an older evalhub
        more = ""
    return " ".join(part for part in (who, action_text(event.action), event.subject, more) if part)


def shown_sentence(event: AuditEvent) -> str:
    """Return an event's sentence as a page shows it."""
    return _redact_text(event, describe_event(event))


def shown_subject(event: AuditEvent) -> str:
    """Return an event's subject as a page shows it."""
    return _redact_text(event, event.subject)


def _redact_text(event: AuditEvent, text: str) -> str:
    # Admins see whom they invited; anything else that looks like a secret or an address is redacted.
    return mark_invisible(text[:400]) if event.action.startswith("member.") else show_text(text[:400])


def action_text(action: str) -> str:
    """Return an action as text between a person's name and the subject; an unknown one as stored."""
    return ACTIONS.get(action, action)
