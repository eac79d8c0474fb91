from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "evalhub.teams"
    label = "teams"
