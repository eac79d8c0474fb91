"""Remove a run's imported sessions that never called their tool, from its page."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evalhub.lib.numbers import counted
from evalhub.teams.pages import ProjectRequest, project_page
from runs.exchange.imports.removing_sessions import BACKUPS, remove_from
from runs.models import Run


@require_POST
@project_page("upload")
def sessions_remove(request: ProjectRequest, pk: int) -> HttpResponse:
    """Remove them, with everything stored of them."""
    run = Run.objects.filter(project=request.access.project, pk=pk).first()
    if run is None:
        raise Http404
    removed = remove_from(run.pk, by=request.user)
    if removed:
        messages.success(request, f"Removed {counted(removed, 'session')}. {BACKUPS}")
    else:
        messages.info(request, "Every session of this run called its tool.")
    return redirect(run)
