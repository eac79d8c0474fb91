cat <<'JSON'
{"text": "In Lima it is 17 °C with fog.", "trace": [
  {"type": "tool_call", "id": "1", "name": "get_weather", "input": {"city": "Lima"}},
  {"type": "tool_result", "id": "1", "name": "get_weather", "output": "17"}]}
JSON
