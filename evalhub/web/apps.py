from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "evalhub.web"
    label = "web"
