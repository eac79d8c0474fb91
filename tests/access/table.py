"""Who may do what at every address. A new page or operation gets a line here, or the walk fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ROLES = ("viewer", "runner", "author", "admin")
ANYONE, SIGNED_IN = "anyone", "signed in"


@dataclass(frozen=True)
class Page:
    """An address of the site, with the names of `samples` in it, and the least that it takes."""

    path: str
    least: str
    method: str = "GET"
    answers: tuple[int, ...] = (200,)
    """Statuses for whoever may: a form that is sent empty is 422, say."""


# fmt: off
PAGES: dict[str, Page] = {
    "sign-in": Page("/sign-in/", ANYONE),
    "sign-in-link": Page("/sign-in/link/spent/", ANYONE, answers=(410,)),
    "invitation": Page("/invitation/spent/", ANYONE, answers=(410,)),
    "sign-out": Page("/sign-out/", ANYONE, "POST", answers=(302,)),
    "project-new": Page("/projects/new/", SIGNED_IN, answers=(200, 403)),
    "password-change": Page("/password/", SIGNED_IN),
    "home": Page("/", SIGNED_IN, answers=(200, 302)),
    "project-list": Page("/projects/", SIGNED_IN),
    "patterns": Page("/patterns/", SIGNED_IN),
    "schema-list": Page("/schemas/", ANYONE),
    "schema": Page("/schemas/llm-tool-test.json", ANYONE),
    "healthz": Page("/healthz", ANYONE),
    "metrics": Page("/metrics", ANYONE),
    "run-short": Page("/runs/{run_id}/", "viewer", answers=(302,)),
    "trial-short": Page("/trials/{trial_id}/", "viewer", answers=(302,)),
    "suite-upload": Page("/p/tools/upload/", "author", "POST", answers=(422,)),
    "project-home": Page("/p/tools/", "viewer"),
    "project-running": Page("/p/tools/running/", "viewer", answers=(302,)),
    "suite-list": Page("/p/tools/suites/", "viewer"),
    "suite-detail": Page("/p/tools/suites/{slug}/", "viewer"),
    "suite-pattern": Page("/p/tools/suites/{slug}/pattern/", "runner"),
    "suite-prove": Page("/p/tools/suites/{slug}/prove/", "runner", "POST", answers=(302,)),
    "suite-settings": Page("/p/tools/suites/{slug}/settings/", "author", "POST", answers=(302,)),
    "suite-new": Page("/p/tools/new-suite/", "author"),
    "suite-edit": Page("/p/tools/suites/{slug}/edit/", "author"),
    "suite-retire": Page("/p/tools/suites/{slug}/retire/", "author", "POST", answers=(302,)),
    "suite-difference": Page("/p/tools/suites/{slug}/difference/", "viewer"),
    "run-tags": Page("/p/tools/runs/{run_id}/tags/", "runner", "POST", answers=(302,)),
    "guidance-list": Page("/p/tools/guidance/", "viewer"),
    "guidance-matrix": Page("/p/tools/guidance/matrix/", "viewer", answers=(302,)),
    "guidance-detail": Page("/p/tools/guidance/{guidance_id}/", "viewer"),
    "guidance-adopt": Page("/p/tools/guidance/{guidance_id}/adopt/", "author", "POST", answers=(302,)),
    "guidance-against": Page("/p/tools/guidance/{guidance_id}/against/{b}/", "viewer"),
    "annotation-add": Page("/p/tools/trends/annotations/", "runner", "POST", answers=(302,)),
    "annotation-remove": Page("/p/tools/trends/annotations/{annotation_id}/remove/", "admin", "POST", answers=(302,)),
    "run-list": Page("/p/tools/runs/", "viewer"),
    "run-new": Page("/p/tools/runs/new/", "runner"),
    "run-detail": Page("/p/tools/runs/{run_id}/", "viewer"),
    "run-tools": Page("/p/tools/runs/{run_id}/tools/", "viewer"),
    "run-import": Page("/p/tools/runs/import/", "author"),
    "session-import": Page("/p/tools/runs/sessions/", "author"),
    "run-download": Page("/p/tools/runs/{run_id}/download/json/", "viewer"),
    "baseline-set": Page("/p/tools/runs/{run_id}/baseline/", "runner", "POST", answers=(302,)),
    "baseline-unset": Page("/p/tools/baselines/{baseline_id}/unset/", "runner", "POST", answers=(302,)),
    "run-progress": Page("/p/tools/runs/{run_id}/progress/", "viewer", answers=(302,)),
    "diagnosis-review": Page("/p/tools/runs/{run_id}/diagnosis/many-commands/", "runner", "POST", answers=(302,)),
    "run-separate": Page("/p/tools/runs/{run_id}/separate/", "runner", "POST", answers=(302,)),
    "run-cancel": Page("/p/tools/runs/{run_id}/cancel/", "runner", "POST", answers=(302,)),
    "run-compare-again": Page("/p/tools/runs/{run_id}/compare-again/", "runner", "POST", answers=(302,)),
    "run-retry": Page("/p/tools/runs/{run_id}/retry/", "runner", "POST", answers=(302,)),
    "run-resume": Page("/p/tools/runs/{run_id}/resume/", "runner", "POST", answers=(302,)),
    "trial-detail": Page("/p/tools/trials/{trial_id}/", "viewer"),
    "trial-against": Page("/p/tools/trials/{trial_id}/against/{before_trial_id}/", "viewer"),
    "trial-against-any": Page("/p/tools/trials/{trial_id}/against/?base={before_trial_id}", "viewer", answers=(302,)),
    "trial-draft": Page("/p/tools/trials/{trial_id}/draft/", "viewer", answers=(200, 404)),
    "trial-replay": Page("/p/tools/trials/{trial_id}/replay/", "viewer"),
    "trial-cast": Page("/p/tools/trials/{trial_id}/replay.cast", "viewer"),
    "trial-transcript": Page("/p/tools/trials/{trial_id}/transcript/", "viewer"),
    "trial-artifact": Page("/p/tools/trials/{trial_id}/artifacts/{artifact}/", "author"),
    "trial-file": Page("/p/tools/trials/{trial_id}/files/0/", "author"),
    "target-list": Page("/p/tools/targets/", "viewer"),
    "target-import": Page("/p/tools/targets/import/", "author", "POST", answers=(422,)),
    "target-new": Page("/p/tools/targets/new/", "author"),
    "target-try": Page("/p/tools/targets/tries/{try_id}/", "author"),
    "target-edit": Page("/p/tools/targets/{target_id}/", "admin"),
    "target-check": Page("/p/tools/targets/{target_id}/check/", "viewer", answers=(302,)),
    "target-show-program": Page("/p/tools/targets/{target_id}/show-program/", "admin", "POST", answers=(302,)),
    "target-accept": Page("/p/tools/targets/{target_id}/accept/", "admin", "POST", answers=(302,)),
    "target-remove": Page("/p/tools/targets/{target_id}/remove/", "admin", "POST", answers=(302,)),
    "suite-targets": Page("/p/tools/suites/{slug}/targets/", "author", "POST", answers=(302,)),
    "regressions": Page("/p/tools/regressions/", "viewer"),
    "alert-triage": Page("/p/tools/regressions/{alert_id}/", "runner", "POST", answers=(302,)),
    "triage-selected": Page("/p/tools/regressions/selected/", "runner", "POST", answers=(302,)),
    "alert-confirm": Page("/p/tools/regressions/{alert_id}/confirm/", "runner"),
    "alert-revert": Page("/p/tools/regressions/{alert_id}/revert/", "author", "POST", answers=(302,)),
    "alert-evidence": Page("/p/tools/regressions/{alert_id}/evidence/", "viewer", answers=(286,)),
    "alert-details": Page("/p/tools/regressions/{alert_id}/details/", "viewer"),
    "alert-markdown": Page("/p/tools/regressions/{alert_id}/markdown/", "viewer"),
    "compare": Page("/p/tools/compare/?runs={before_id},{run_id}", "viewer"),
    "compare-help": Page("/p/tools/compare/help/", "viewer", "POST", answers=(302,)),
    "compare-more": Page("/p/tools/compare/more/?runs={before_id},{run_id}", "runner"),
    "project-settings": Page("/p/tools/settings/", "viewer"),
    "member-add": Page("/p/tools/settings/members/", "admin", "POST", answers=(422,)),
    "member-invite": Page("/p/tools/settings/invitations/", "admin", "POST", answers=(422,)),
    "member-uninvite": Page("/p/tools/settings/invitations/1/withdraw/", "admin", "POST", answers=(302,)),
    "member-role": Page("/p/tools/settings/members/{member_id}/role/", "admin", "POST", answers=(422,)),
    "member-remove": Page("/p/tools/settings/members/{member_id}/remove/", "admin", "POST", answers=(302,)),
    "token-create": Page("/p/tools/settings/tokens/", "viewer", "POST", answers=(422,)),
    "token-revoke": Page("/p/tools/settings/tokens/{token_id}/revoke/", "viewer", "POST", answers=(302,)),
    "settings-audit": Page("/p/tools/settings/audit/", "admin"),
    "price-list": Page("/p/tools/settings/prices/", "viewer"),
    "price-remove": Page("/p/tools/settings/prices/{price_id}/remove/", "admin", "POST", answers=(302,)),
    "channel-list": Page("/p/tools/settings/notifications/", "viewer"),
    "channel-new": Page("/p/tools/settings/notifications/new/webhook/", "admin"),
    "channel-detail": Page("/p/tools/settings/notifications/{channel_id}/", "admin"),
    "channel-test": Page("/p/tools/settings/notifications/{channel_id}/test/", "admin", "POST", answers=(302,)),
    "channel-delete": Page("/p/tools/settings/notifications/{channel_id}/delete/", "admin", "POST", answers=(302,)),
    "delivery-again": Page("/p/tools/settings/notifications/messages/{delivery_id}/again/", "admin", "POST", answers=(302,)),
    "tool-usage": Page("/p/tools/usage/", "viewer"),
    "search": Page("/p/tools/search/?q=create", "viewer"),
    "trends": Page("/p/tools/trends/", "viewer"),
    "reviews": Page("/p/tools/reviews/", "viewer"),
    "rationales": Page("/p/tools/reviews/rationales/", "viewer"),
    "disagreements": Page("/p/tools/reviews/disagreements/", "viewer"),
    "calibration": Page("/p/tools/reviews/calibration/", "viewer"),
    "statement-review": Page("/p/tools/reviews/statements/", "runner", "POST", answers=(302,)),
    "run-reassess": Page("/p/tools/runs/{run_id}/again/", "viewer"),
    "reassessment-adopt": Page("/p/tools/reassessments/{reassessment_id}/adopt/", "runner", "POST", answers=(302,)),
    "trial-overrule": Page("/p/tools/trials/{trial_id}/overrule/", "runner", "POST", answers=(302,)),
    "trial-resolve": Page("/p/tools/trials/{trial_id}/resolution/", "runner", "POST", answers=(302,)),
    "overrule-undo": Page("/p/tools/overrules/{overrule_id}/undo/", "runner", "POST", answers=(302,)),
}
# fmt: on
"""By the name of the URL pattern."""


@dataclass(frozen=True)
class Operation:
    """What a REST operation takes, and what it is sent where that is needed to get past validation."""

    least: str
    body: object = None
    query: str = ""


OPERATIONS: dict[str, Operation] = {
    "GET /health": Operation(ANYONE),
    "GET /projects": Operation("viewer"),
    "GET /projects/{slug}": Operation("viewer"),
    "GET /tokens": Operation("viewer"),
    "POST /tokens": Operation("viewer", {"name": "ci"}),
    "DELETE /tokens/{token_id}": Operation("viewer"),
    "GET /suites": Operation("viewer"),
    "POST /suites": Operation("author"),
    "GET /suites/{slug}": Operation("viewer"),
    "GET /suites/{slug}/versions": Operation("viewer"),
    "GET /suites/{slug}/versions/{number}": Operation("viewer"),
    "GET /suites/{slug}/proofs": Operation("viewer"),
    "POST /suites/{slug}/proofs": Operation("runner"),
    "GET /guidance": Operation("viewer"),
    "POST /guidance": Operation(
        "author", {"suite": "basics", "files": [{"path": "AGENTS.md", "content": "Read."}]}
    ),
    "GET /guidance/{guidance_id}": Operation("viewer"),
    "PATCH /guidance/{guidance_id}": Operation("author", {"name": "better"}),
    "GET /guidance/{a}/against/{b}": Operation("viewer"),
    "GET /targets": Operation("viewer"),
    "GET /targets/{name}": Operation("viewer"),
    "POST /targets": Operation("author", {"definition": {"name": "new", "provider": "mock"}}),
    "PUT /targets/{name}": Operation("admin", {"definition": {"name": "local", "provider": "mock"}}),
    "GET /baselines": Operation("viewer"),
    "POST /baselines": Operation("runner", {"run": 1}),
    "DELETE /baselines/{baseline_id}": Operation("runner"),
    "GET /runs": Operation("viewer"),
    "POST /runs": Operation("runner", {"suites": ["basics"]}),
    "GET /runs/{run_id}": Operation("viewer"),
    "PATCH /runs/{run_id}": Operation("runner", {"tags": ["nightly"]}),
    "POST /runs/{run_id}/cancel": Operation("runner"),
    "POST /runs/{run_id}/retry": Operation("runner"),
    "POST /runs/{run_id}/resume": Operation("runner"),
    "GET /runs/{run_id}/trials": Operation("viewer"),
    "GET /runs/{run_id}/suite-result": Operation("viewer"),
    "POST /results": Operation("author"),
    "POST /sessions": Operation("author"),
    "GET /launches": Operation("viewer"),
    "GET /launches/{launch_id}": Operation("viewer"),
    "GET /trials/{trial_id}": Operation("viewer"),
    "GET /trials/{trial_id}/transcript": Operation("viewer"),
    "GET /trials/{trial_id}/artifacts": Operation("viewer"),
    "GET /trials/{trial_id}/artifacts/{artifact}": Operation("author"),
    "GET /reviews": Operation("viewer"),
    "GET /usage": Operation("viewer"),
    "GET /trials/{trial_id}/overrules": Operation("viewer"),
    "POST /trials/{trial_id}/overrules": Operation("runner", {"score": 0, "passed": True, "reason": "Fine."}),
    "POST /trials/{trial_id}/resolution": Operation("runner", {"right": "both_fine"}),
    "GET /judge-calibrations": Operation("viewer"),
    "GET /review-queue": Operation("viewer"),
    "GET /runs/{run_id}/reassessments": Operation("viewer"),
    "POST /runs/{run_id}/reassessments": Operation("runner", {"kind": "judge"}),
    "POST /reassessments/{reassessment_id}/adopt": Operation("runner"),
    "GET /search": Operation("viewer", query="?q=x"),
    "GET /trends": Operation("viewer", query="?suite=basics"),
    "GET /compare": Operation("viewer", query="?runs={run_id}"),
    "GET /changes": Operation("viewer"),
    "GET /alerts": Operation("viewer"),
    "PATCH /alerts": Operation("runner", {"state": "acknowledged"}),
    "GET /alerts/{alert_id}": Operation("viewer"),
    "POST /alerts/{alert_id}/confirm": Operation("runner"),
    "PATCH /alerts/{alert_id}": Operation("runner", {"state": "acknowledged"}),
}
"""By method and address, as the OpenAPI document has them."""

READS_NO_PROJECT = frozenset(("GET /health", "POST /targets", "POST /tokens"))
"""What a member of another project may do all the same: it is about their own."""

API_PAGES = frozenset(("openapi-json", "docs", "nothing"))
"""Addresses of the REST interface that aren't operations; anyone may see them."""


def read(response: Any) -> Any:
    """Return the response; a file that it sends is read to its end, and so closed."""
    if response.streaming:
        b"".join(response)
    return response
