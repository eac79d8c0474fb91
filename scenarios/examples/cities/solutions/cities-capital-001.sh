cat <<'JSON'
{"text": "The capital of Peru is Lima.", "trace": [
  {"type": "tool_call", "id": "1", "name": "get_capital", "input": {"country": "Peru"}},
  {"type": "tool_result", "id": "1", "name": "get_capital", "output": "Lima"}]}
JSON
