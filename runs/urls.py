"""Addresses of runs and everything over them."""

from __future__ import annotations

from django.urls import path

from runs.alerts.alert_page.views import (
    alert_confirm,
    alert_details,
    alert_evidence,
    alert_markdown,
    alert_revert,
    alert_triage,
    regressions,
    triage_selected,
)
from runs.alerts.notifications.views import (
    channel_delete,
    channel_detail,
    channel_list,
    channel_new,
    channel_test,
    delivery_again,
)
from runs.compare.compare_page.more_trials import more_trials
from runs.compare.compare_page.views import compare, compare_help
from runs.compare.guidance_page.views import (
    guidance_adopt,
    guidance_against_other,
    guidance_detail,
    guidance_list,
    lead_to_guidance,
)
from runs.compare.home_page.views import home, project_home, project_list, project_running
from runs.compare.trends_page.views import annotation_add, annotation_remove, trends
from runs.exchange.import_page.views import run_download, run_import, session_import
from runs.launch.new_run_page.views import run_new
from runs.results.run_page.list_views import run_list, run_tags
from runs.results.run_page.reassess import (
    baseline_set,
    baseline_unset,
    compare_run_again,
    reassess_run,
    reassessment_adopt,
    run_cancel,
    run_retry,
    run_separate,
)
from runs.results.run_page.subcommands import diagnosis_review
from runs.results.run_page.views import run_detail, run_progress, run_tools, short_run, short_trial
from runs.results.search.views import show_search
from runs.results.trial_page.views import (
    artifact,
    transcript_text,
    trial_against,
    trial_against_any,
    trial_cast,
    trial_detail,
    trial_draft,
    trial_replay,
    workspace_file,
)
from runs.results.usage_views import tool_usage
from runs.review.review_page.views import (
    calibration,
    disagreements,
    overrule_undo,
    rationales,
    reviews,
    statement_review,
    trial_overrule,
    trial_resolve,
)
from runs.suites.schemas_page.views import schema, schema_list
from runs.suites.suite_page.editor_views import suite_edit, suite_new, suite_retire
from runs.suites.suite_page.upload_views import suite_pattern, suite_upload
from runs.suites.suite_page.views import (
    suite_detail,
    suite_difference,
    suite_list,
    suite_prove,
    suite_settings,
)
from runs.targets.target_page.edit_views import target_edit, target_new, target_try
from runs.targets.target_page.views import (
    price_list,
    price_remove,
    suite_targets,
    target_accept,
    target_check,
    target_import,
    target_list,
    target_remove,
    target_show_program,
)

project_urls = [
    path("", project_home, name="project-home"),
    path("running/", project_running, name="project-running"),
    path("upload/", suite_upload, name="suite-upload"),
    path("suites/", suite_list, name="suite-list"),
    path("suites/<slug:suite_slug>/", suite_detail, name="suite-detail"),
    path("new-suite/", suite_new, name="suite-new"),
    path("suites/<slug:suite_slug>/edit/", suite_edit, name="suite-edit"),
    path("suites/<slug:suite_slug>/retire/", suite_retire, name="suite-retire"),
    path("suites/<slug:suite_slug>/difference/", suite_difference, name="suite-difference"),
    path("suites/<slug:suite_slug>/prove/", suite_prove, name="suite-prove"),
    path("suites/<slug:suite_slug>/settings/", suite_settings, name="suite-settings"),
    path("guidance/", guidance_list, name="guidance-list"),
    path("guidance/matrix/", lead_to_guidance, name="guidance-matrix"),
    path("guidance/<int:pk>/", guidance_detail, name="guidance-detail"),
    path("guidance/<int:pk>/adopt/", guidance_adopt, name="guidance-adopt"),
    path("guidance/<int:a>/against/<int:b>/", guidance_against_other, name="guidance-against"),
    path("runs/", run_list, name="run-list"),
    path("runs/new/", run_new, name="run-new"),
    path("runs/import/", run_import, name="run-import"),
    path("runs/sessions/", session_import, name="session-import"),
    path("runs/<int:pk>/", run_detail, name="run-detail"),
    path("runs/<int:pk>/tools/", run_tools, name="run-tools"),
    path("runs/<int:pk>/tags/", run_tags, name="run-tags"),
    path("runs/<int:pk>/baseline/", baseline_set, name="baseline-set"),
    path("runs/<int:pk>/download/<slug:name>/", run_download, name="run-download"),
    path("baselines/<int:pk>/unset/", baseline_unset, name="baseline-unset"),
    path("runs/<int:pk>/diagnosis/<slug:pattern>/", diagnosis_review, name="diagnosis-review"),
    path("runs/<int:pk>/progress/", run_progress, name="run-progress"),
    path("runs/<int:pk>/separate/", run_separate, name="run-separate"),
    path("runs/<int:pk>/cancel/", run_cancel, name="run-cancel"),
    path("runs/<int:pk>/compare-again/", compare_run_again, name="run-compare-again"),
    path("runs/<int:pk>/retry/", run_retry, {"again": "retry"}, name="run-retry"),
    path("runs/<int:pk>/resume/", run_retry, {"again": "resume"}, name="run-resume"),
    path("trials/<int:pk>/", trial_detail, name="trial-detail"),
    path("trials/<int:pk>/against/<int:base>/", trial_against, name="trial-against"),
    path("trials/<int:pk>/against/", trial_against_any, name="trial-against-any"),
    path("trials/<int:pk>/draft/", trial_draft, name="trial-draft"),
    path("trials/<int:pk>/replay/", trial_replay, name="trial-replay"),
    path("trials/<int:pk>/replay.cast", trial_cast, name="trial-cast"),
    path("trials/<int:pk>/transcript/", transcript_text, name="trial-transcript"),
    path("trials/<int:pk>/artifacts/<str:name>/", artifact, name="trial-artifact"),
    path("trials/<int:pk>/files/<int:number>/", workspace_file, name="trial-file"),
    path("targets/", target_list, name="target-list"),
    path("targets/import/", target_import, name="target-import"),
    path("targets/new/", target_new, name="target-new"),
    path("targets/tries/<int:pk>/", target_try, name="target-try"),
    path("targets/<int:pk>/", target_edit, name="target-edit"),
    path("targets/<int:pk>/check/", target_check, name="target-check"),
    path("targets/<int:pk>/show-program/", target_show_program, name="target-show-program"),
    path("targets/<int:pk>/accept/", target_accept, name="target-accept"),
    path("targets/<int:pk>/remove/", target_remove, name="target-remove"),
    path("suites/<slug:suite_slug>/targets/", suite_targets, name="suite-targets"),
    path("suites/<slug:suite_slug>/pattern/", suite_pattern, name="suite-pattern"),
    path("regressions/", regressions, name="regressions"),
    path("regressions/selected/", triage_selected, name="triage-selected"),
    path("regressions/<int:pk>/", alert_triage, name="alert-triage"),
    path("regressions/<int:pk>/confirm/", alert_confirm, name="alert-confirm"),
    path("regressions/<int:pk>/revert/", alert_revert, name="alert-revert"),
    path("regressions/<int:pk>/evidence/", alert_evidence, name="alert-evidence"),
    path("regressions/<int:pk>/details/", alert_details, name="alert-details"),
    path("regressions/<int:pk>/markdown/", alert_markdown, name="alert-markdown"),
    path("compare/", compare, name="compare"),
    path("compare/help/", compare_help, name="compare-help"),
    path("compare/more/", more_trials, name="compare-more"),
    path("settings/notifications/", channel_list, name="channel-list"),
    path("settings/notifications/new/<str:kind>/", channel_new, name="channel-new"),
    path("settings/notifications/<int:pk>/", channel_detail, name="channel-detail"),
    path("settings/notifications/<int:pk>/test/", channel_test, name="channel-test"),
    path("settings/notifications/<int:pk>/delete/", channel_delete, name="channel-delete"),
    path("settings/notifications/messages/<int:pk>/again/", delivery_again, name="delivery-again"),
    path("settings/prices/", price_list, name="price-list"),
    path("settings/prices/<int:pk>/remove/", price_remove, name="price-remove"),
    path("search/", show_search, name="search"),
    path("usage/", tool_usage, name="tool-usage"),
    path("trends/", trends, name="trends"),
    path("trends/annotations/", annotation_add, name="annotation-add"),
    path("trends/annotations/<int:pk>/remove/", annotation_remove, name="annotation-remove"),
    path("reviews/", reviews, name="reviews"),
    path("reviews/statements/", statement_review, name="statement-review"),
    path("reviews/rationales/", rationales, name="rationales"),
    path("reviews/disagreements/", disagreements, name="disagreements"),
    path("reviews/calibration/", calibration, name="calibration"),
    path("runs/<int:pk>/again/", reassess_run, name="run-reassess"),
    path("reassessments/<int:pk>/adopt/", reassessment_adopt, name="reassessment-adopt"),
    path("trials/<int:pk>/overrule/", trial_overrule, name="trial-overrule"),
    path("trials/<int:pk>/resolution/", trial_resolve, name="trial-resolve"),
    path("overrules/<int:pk>/undo/", overrule_undo, name="overrule-undo"),
]

urlpatterns = [
    path("", home, name="home"),
    path("projects/", project_list, name="project-list"),
    path("runs/<int:pk>/", short_run, name="run-short"),
    path("trials/<int:pk>/", short_trial, name="trial-short"),
    path("schemas/", schema_list, name="schema-list"),
    path("schemas/<slug:name>.json", schema, name="schema"),
]
