"""Views of the project list and a project's home."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from evalhub.teams.access import may_create_projects
from evalhub.teams.pages import ProjectRequest, project_page, projects_of
from evalhub.web.fragments import STOP_POLLING, page_or_fragment
from runs.compare.home_page.project_home import project_summary, running_now


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the only project, or list all."""
    projects = projects_of(request.user)
    return redirect(projects[0]) if len(projects) == 1 else project_list(request)


@require_safe
def project_list(request: HttpRequest) -> HttpResponse:
    """List the user's projects."""
    return render(
        request,
        "compare/home/projects.html",
        {"projects": projects_of(request.user), "may_create": may_create_projects(request.user)},
    )


@require_safe
@project_page()
def project_home(request: ProjectRequest) -> HttpResponse:
    """Show whether a line got worse, what runs, what it costs, and all lines."""
    project = request.access.project
    running = running_now(project)
    summary = project_summary(project, now=timezone.now())
    context = {
        "summary": summary,
        "running": running,
        "line_days": settings.LINE_DAYS,
        "may_run": request.access.may("run"),
        "may_upload": request.access.may("upload"),
        # The navigation shows it, too.
        "untriaged": summary.untriaged,
    }
    return render(request, "compare/home/home.html", context)


@require_safe
@project_page()
def project_running(request: ProjectRequest) -> HttpResponse:
    """Show open runs; without any, htmx stops polling."""
    running = running_now(request.access.project)
    status = 200 if running else STOP_POLLING
    if not request.htmx:
        return redirect(request.access.project)
    return page_or_fragment(
        request, "compare/home/home.html", "compare/home/_running.html", {"running": running}, status=status
    )
