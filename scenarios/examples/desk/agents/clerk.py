#!/usr/bin/env python3
"""A clerk that answers from a price list: no model, a real process with a real trace of what it looked up.

Usage: clerk.py OUTPUT_FILE PROMPT FILE...; the answer is JSON with `text` and `trace`.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path


def read_prices(paths: list[str]) -> dict[str, Decimal]:
    prices: dict[str, Decimal] = {}
    for path in paths:
        if path.endswith(".csv"):
            with Path(path).open(newline="", encoding="utf-8") as stream:
                prices |= {row["item"]: Decimal(row["price"]) for row in csv.DictReader(stream)}
    return prices


def asked_items(prompt: str) -> list[str]:
    question = next((line for line in prompt.splitlines() if "What do" in line), prompt)
    return re.findall(r"\ban? (\w+)", question)


def main() -> None:
    output, prompt, *files = sys.argv[1:]
    prices = read_prices(files)
    trace: list[dict[str, object]] = []
    item_prices: dict[str, Decimal] = {}
    for item in asked_items(prompt):
        now = datetime.now(UTC).isoformat()
        trace.append({"type": "tool_call", "timestamp": now, "name": "lookup", "input": {"item": item}})
        price = prices.get(item)
        answer = str(price) if price is not None else "not on the list"
        trace.append({"type": "tool_result", "timestamp": now, "name": "lookup", "output": answer})
        if price is not None:
            item_prices[item] = price
        else:
            answer = f"A {item} is not on the price list."
            break
    else:
        total = sum(item_prices.values())
        answer = (
            f"Together they cost {total}."
            if len(item_prices) > 1
            else f"A {next(iter(item_prices))} costs {total}."
        )
    Path(output).write_text(json.dumps({"text": answer, "trace": trace}), encoding="utf-8")


if __name__ == "__main__":
    main()
