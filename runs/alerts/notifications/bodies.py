"""Write a message as a channel of each kind expects it. Pure."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from evalhub.lib.timestamps import moment
from runs.alerts.notifications.messages import Message

LONGEST_SUBJECT = 200
LONGEST_SLACK_TEXT = 2900
"""Characters; Slack refuses sections of more than 3,000."""


def webhook_body(event: str, at: datetime, message: Message) -> bytes:
    """Return the JSON of a webhook: `type`, `timestamp` of the event and `data`."""
    data: dict[str, Any] = {
        **message.data,
        "title": message.title,
        "text": "\n".join(message.lines),
        "url": message.link,
    }
    return _json({"type": event, "timestamp": moment(at), "data": data})


def slack_body(message: Message) -> bytes:
    """Return a message for a Slack incoming webhook: `text` for notifications, `blocks` for the channel.

    Source: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    """
    facts = " · ".join(f"{name}: {value}" for name, value in message.facts)
    text = "\n".join([f"*{_escaped(message.title)}*", *map(_escaped, message.lines)])[:LONGEST_SLACK_TEXT]
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": text}},
        {"type": "section", "text": {"type": "mrkdwn", "text": f"<{message.link}|Open in evalhub>"}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _escaped(facts)[:LONGEST_SLACK_TEXT]}]},
    ]
    return _json({"text": _escaped(message.title), "blocks": blocks})


def mail_subject(message: Message) -> str:
    """Return the title on one line."""
    return f"[evalhub] {' '.join(message.title.split())}"[:LONGEST_SUBJECT]


def mail_text(message: Message) -> str:
    """Return a mail's text."""
    facts = [f"{name}: {value}" for name, value in message.facts]
    return "\n".join([*message.lines, "", message.link, "", *facts, ""])


def _escaped(text: str) -> str:
    """Return a text in which Slack finds no links and mentions.

    Source: https://docs.slack.dev/messaging/formatting-message-text, Escaping text
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _json(value: Any) -> bytes:
    # Sorted, so that every attempt has the same body whatever order the database returns.
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()
