#!/usr/bin/env python3
"""An agent behind HTTP in two versions, without a model: it answers questions about cities with three tools.

POST /v1/chat and /v2/chat take {"message": …} and answer {"response", "toolCalls", "usage"}. Version 2 has a
faster way to answer questions about the weather, and with it a bug: it hands out the raw record.
Usage: city_agent.py PORT
"""

from __future__ import annotations

import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CITIES = {
    "Paris": {"country": "France", "population": 2_100_000, "sky": "clear", "celsius": 18},
    "Oslo": {"country": "Norway", "population": 717_000, "sky": "snow", "celsius": -3},
    "Lima": {"country": "Peru", "population": 10_000_000, "sky": "fog", "celsius": 17},
}


def get_weather(city: str) -> dict[str, object]:
    return {"sky": CITIES[city]["sky"], "celsius": CITIES[city]["celsius"]}


def get_population(city: str) -> int:
    return int(str(CITIES[city]["population"]))


def get_capital(country: str) -> str:
    return next(city for city, facts in CITIES.items() if facts["country"] == country)


class Turn:
    """One question: the tools that were called, and the answer."""

    def __init__(self, version: int, message: str) -> None:
        self.version = version
        self.message = message
        self.calls: list[dict[str, object]] = []

    def call(self, tool, **params):  # type: ignore[no-untyped-def]
        began = time.monotonic()
        result = tool(**params)
        milliseconds = round(1000 * (time.monotonic() - began), 3)
        self.calls.append(
            {"name": tool.__name__, "params": params, "success": True, "durationMs": milliseconds}
        )
        return result

    def answer(self) -> str:
        city = next((name for name in CITIES if name in self.message), None)
        country = next(
            (str(facts["country"]) for facts in CITIES.values() if str(facts["country"]) in self.message),
            None,
        )
        if country and "capital" in self.message:
            return f"The capital of {country} is {self.call(get_capital, country=country)}."
        if city and re.search(r"\b(people|population|inhabitants)\b", self.message):
            return f"{city} has {self.call(get_population, city=city)} inhabitants."
        if city and re.search(r"\b(weather|warm|cold|umbrella)\b", self.message):
            weather = self.call(get_weather, city=city)
            if self.version == 2:
                return json.dumps(weather)
            return f"In {city} it is {weather['celsius']} °C with {weather['sky']}."
        return "I can tell you about capitals, populations and the weather."


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match = re.fullmatch(r"/v([12])/chat", self.path)
        if match is None:
            return self.reply(404, {"error": "There is /v1/chat and /v2/chat."})
        try:
            message = str(json.loads(body)["message"])
        except (ValueError, KeyError, TypeError):
            return self.reply(400, {"error": "Send JSON with a message."})
        turn = Turn(int(match[1]), message)
        answer = turn.answer()
        usage = {"inputTokens": len(message.split()), "outputTokens": len(answer.split())}
        return self.reply(200, {"response": answer, "toolCalls": turn.calls, "usage": usage})

    def do_GET(self) -> None:
        self.reply(200, {"ok": True})

    def reply(self, status: int, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: every trial would be a line."""


class Server(ThreadingHTTPServer):
    """Lets more than the default of five trials connect at once."""

    request_queue_size = 128


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
