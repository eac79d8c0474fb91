#!/usr/bin/env python3
"""A judge that follows rules: no model. Grades by how much of the reference answer the answer holds."""

from __future__ import annotations

import json
import re
import sys

SECTION = re.compile(r"\[\[ ## (?P<name>\w+) ## \]\]\n(?P<text>.*?)(?=\n\n\[\[ ## |\Z)", re.DOTALL)
MARKS = re.compile(r"</?data-[0-9a-f]+>\n?")
SMALL = frozenset(["a", "an", "the", "is", "it", "on", "of", "to", "and", "they"])


def words(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z0-9.]+[a-z0-9]", text.lower()) if word not in SMALL]


def grade(prompt: str) -> dict[str, object]:
    sections = {match["name"]: MARKS.sub("", match["text"]).strip() for match in SECTION.finditer(prompt)}
    expected = list(dict.fromkeys(words(sections.get("reference_answer", ""))))
    answered = set(words(sections.get("candidate_answer", "")))
    hits = [word for word in expected if word in answered]
    misses = [word for word in expected if word not in answered]
    score = len(hits) / len(expected) if expected else 0.0
    return {
        "score": round(score, 4),
        "hits": [f"Says '{word}'." for word in hits[:4]],
        "misses": [f"Does not say '{word}'." for word in misses[:4]],
        "reasoning": f"{len(hits)} of {len(expected)} words of the reference answer are in the answer.",
    }


if __name__ == "__main__":
    print(json.dumps(grade(sys.stdin.read())))
