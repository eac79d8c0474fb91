"""Addresses of runs and everything over them."""

from __future__ import annotations

from django.urls import path

from runs.views import (
    baselines,
    compare,
    home,
    over_runs,
    prices,
    regressions,
    results,
    run_new,
    runs,
    search,
    suites,
    targets,
    trial_against,
    trials,
    uploads,
)

project_urls = [
    path("", home.project_home, name="project-home"),
    path("running/", home.project_running, name="project-running"),
    path("upload/", uploads.suite_upload, name="suite-upload"),
    path("suites/", suites.suite_list, name="suite-list"),
    path("suites/<slug:suite>/", suites.suite_detail, name="suite-detail"),
    path("suites/<slug:suite>/difference/", suites.suite_difference, name="suite-difference"),
    path("runs/", runs.run_list, name="run-list"),
    path("runs/new/", run_new.run_new, name="run-new"),
    path("runs/import/", results.run_import, name="run-import"),
    path("runs/<int:pk>/", runs.run_detail, name="run-detail"),
    path("runs/<int:pk>/baseline/", baselines.baseline_set, name="baseline-set"),
    path("runs/<int:pk>/download/<slug:name>/", results.run_download, name="run-download"),
    path("baselines/<int:pk>/unset/", baselines.baseline_unset, name="baseline-unset"),
    path("runs/<int:pk>/progress/", runs.run_progress, name="run-progress"),
    path("runs/<int:pk>/cancel/", runs.run_cancel, name="run-cancel"),
    path("trials/<int:pk>/", trials.trial_detail, name="trial-detail"),
    path("trials/<int:pk>/against/<int:base>/", trial_against.trial_against, name="trial-against"),
    path("trials/<int:pk>/transcript/", trials.transcript_text, name="trial-transcript"),
    path("trials/<int:pk>/artifacts/<str:name>/", trials.artifact, name="trial-artifact"),
    path("trials/<int:pk>/files/<int:number>/", trials.workspace_file, name="trial-file"),
    path("targets/", targets.target_list, name="target-list"),
    path("targets/import/", targets.target_import, name="target-import"),
    path("targets/<int:pk>/", targets.target_edit, name="target-edit"),
    path("targets/<int:pk>/check/", targets.target_check, name="target-check"),
    path("targets/<int:pk>/accept/", targets.target_accept, name="target-accept"),
    path("targets/<int:pk>/remove/", targets.target_remove, name="target-remove"),
    path("suites/<slug:suite>/targets/", targets.suite_targets, name="suite-targets"),
    path("regressions/", regressions.regressions, name="regressions"),
    path("regressions/<int:pk>/", regressions.alert_triage, name="alert-triage"),
    path("compare/", compare.compare, name="compare"),
    path("settings/prices/", prices.price_list, name="price-list"),
    path("settings/prices/<int:pk>/remove/", prices.price_remove, name="price-remove"),
    path("search/", search.search, name="search"),
    path("trends/", over_runs.trends, name="trends"),
    path("reviews/", over_runs.reviews, name="reviews"),
]

urlpatterns = [
    path("", home.home, name="home"),
    path("projects/", home.project_list, name="project-list"),
    path("runs/<int:pk>/", runs.short_run, name="run-short"),
    path("trials/<int:pk>/", runs.short_trial, name="trial-short"),
]
