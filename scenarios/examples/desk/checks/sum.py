"""Whether the answer names the sum of the prices of all items that are asked for."""

import csv
import json
import re
import sys
from decimal import Decimal
from pathlib import Path

given = json.load(sys.stdin)
with (Path(__file__).parent.parent / "data" / "prices.csv").open(newline="") as stream:
    prices = {row["item"]: Decimal(row["price"]) for row in csv.DictReader(stream)}
# The attached list follows the question, and names every item.
question = given["question"].split("<file")[0]
asked = [item for item in prices if re.search(rf"\b{item}\b", question)]
total = str(sum(prices[item] for item in asked))
right = total in given["candidate_answer"]
print(
    json.dumps(
        {
            "score": 1.0 if right else 0.0,
            "hits": [f"Names the sum {total}."] if right else [],
            "misses": [] if right else [f"Does not name the sum {total}."],
            "reasoning": f"{' + '.join(str(prices[item]) for item in asked)} = {total}.",
        }
    )
)
