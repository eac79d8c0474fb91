# The answer on standard output, with the calls that led to it.
cat <<'JSON'
{"text": "A lamp costs 19.50.", "trace": [{"type": "tool_call", "name": "lookup", "input": {"item": "lamp"}}]}
JSON
