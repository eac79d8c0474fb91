"""Addresses for getting in and out, and of a project's settings."""

from __future__ import annotations

from django.urls import path

from evalhub.teams import invitations, settings_views, views

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("sign-in/link/<str:secret>/", views.sign_in_link, name="sign-in-link"),
    path("sign-out/", views.SignOut.as_view(), name="sign-out"),
    path("invitation/<str:secret>/", invitations.invitation, name="invitation"),
    path("projects/new/", invitations.project_new, name="project-new"),
    path("password/", views.ChangePassword.as_view(), name="password-change"),
]

project_urls = [
    path("settings/", settings_views.project_settings, name="project-settings"),
    path("settings/members/", settings_views.member_add, name="member-add"),
    path("settings/invitations/", settings_views.member_invite, name="member-invite"),
    path("settings/invitations/<int:pk>/withdraw/", settings_views.member_uninvite, name="member-uninvite"),
    path("settings/members/<int:pk>/role/", settings_views.member_role, name="member-role"),
    path("settings/members/<int:pk>/remove/", settings_views.member_remove, name="member-remove"),
    path("settings/tokens/", settings_views.token_create, name="token-create"),
    path("settings/tokens/<int:pk>/revoke/", settings_views.token_revoke, name="token-revoke"),
    path("settings/audit/", settings_views.audit_log, name="settings-audit"),
]
"""Those below a project."""
