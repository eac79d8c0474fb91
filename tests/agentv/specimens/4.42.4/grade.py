"""The script of the specimens' code graders: prints assertions, or text and an exit code."""

import json
import sys

given = json.load(sys.stdin)
if sys.argv[1] == "json":
    found = [
        {"text": "has a", "passed": "a" in given["output"]},
        {"text": "criteria", "passed": given["criteria"] == "x"},
    ]
    sys.stdout.write(json.dumps({"assertions": found}))
else:
    sys.stdout.write("plain text")
    sys.exit(sys.argv[1] == "fail")
