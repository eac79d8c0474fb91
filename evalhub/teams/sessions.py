"""Who is signed in, read for every page: Django's sessions in the database and its users, by prepared queries."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessions
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from evalhub.teams.access import ask_member, member
from evalhub.teams.guesses import Guesses
from evalhub.web.prepared import prepared

_people = Guesses()


class SessionStore(DatabaseSessions):
    """Django's sessions in the database."""

    def load(self) -> dict[str, Any]:
        """Return what the session holds."""
        held = super().load()
        if SESSION_KEY in held and self.session_key:
            _people.remember(self.session_key, int(held[SESSION_KEY]))
        return held

    def _get_session_from_db(self) -> Session | None:
        """Return the session that has not expired, as Django's does."""
        if person := _people.get(self.session_key or ""):
            ask_member(person)
        found = _sessions(self.session_key or "")
        if found and found[0].expire_date > timezone.now():
            return found[0]
        self._session_key = None
        return None


@prepared
def _sessions(key: str) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key)


class Users(ModelBackend):
    """Django's users with passwords."""

    def get_user(self, user_id: int) -> User | None:
        """Return the person with this key who may sign in, else None; with their memberships, which pages ask for."""
        user = member(int(user_id)) or next(iter(_users(int(user_id))), None)
        return user if user and self.user_can_authenticate(user) else None


@prepared
def _users(pk: int) -> QuerySet[User]:
    return get_user_model()._default_manager.filter(pk=pk)
