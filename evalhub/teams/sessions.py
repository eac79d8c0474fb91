"""Loads the signed-in person with their memberships."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from evalhub.teams.access import member


class Users(ModelBackend):
    """Django's users with passwords."""

    def get_user(self, user_id: int) -> User | None:
        """Return the person with this key who may sign in, else None; with their memberships, which pages ask for."""
        user = member(user_id) or get_user_model().objects.filter(pk=user_id).first()
        return user if user and self.user_can_authenticate(user) else None
