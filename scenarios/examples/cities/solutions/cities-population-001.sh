cat <<'JSON'
{"text": "Oslo has 717000 inhabitants.", "trace": [
  {"type": "tool_call", "id": "1", "name": "get_population", "input": {"city": "Oslo"}},
  {"type": "tool_result", "id": "1", "name": "get_population", "output": "717000"}]}
JSON
