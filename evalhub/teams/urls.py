"""Addresses for getting in and out."""

from __future__ import annotations

from django.urls import path

from evalhub.teams import views

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("sign-in/link/<str:secret>/", views.sign_in_link, name="sign-in-link"),
    path("sign-out/", views.SignOut.as_view(), name="sign-out"),
    path("password/", views.ChangePassword.as_view(), name="password-change"),
]
