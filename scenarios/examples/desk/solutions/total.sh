cat <<'JSON'
{"text": "Together they cost 61.50.", "trace": [
  {"type": "tool_call", "name": "lookup", "input": {"item": "lamp"}},
  {"type": "tool_call", "name": "lookup", "input": {"item": "rug"}}]}
JSON
