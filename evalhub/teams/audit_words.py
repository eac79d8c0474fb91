"""What the audit log's actions are called where people read them as sentences."""

from __future__ import annotations

DONE = {
    "alert.triage": "triaged the regression of",
    "baseline.set": "marked as baseline",
    "baseline.unset": "removed the baseline",
    "guidance.create": "added guidance",
    "member.add": "added the member",
    "member.remove": "removed the member",
    "member.role": "set the role of",
    "price.add": "added the price of",
    "price.remove": "removed the price of",
    "project.change": "changed the settings of",
    "project.seed-manifest": "set the seed manifest",
    "results.import": "imported results from",
    "retention.prune": "pruned old data",
    "review": "reviewed",
    "run.cancel": "cancelled",
    "run.request": "started",
    "sign-in.link": "signed in with a link",
    "suite.upload": "uploaded the suite",
    "target.accept": "accepted the target",
    "target.change": "changed the target",
    "target.check": "checked the target",
    "target.reject": "rejected the target",
    "target.remove": "removed the target",
    "token.create": "created the token",
    "token.revoke": "revoked the token",
}
"""By action; what it was done to follows."""


def sentence(action: str, subject: str) -> str:
    """Return what somebody did, to stand after their name; an action without words is said as it is."""
    return f"{DONE.get(action, action)} {subject}".strip()
