import json

import pytest

from evaluators.statistics.staleness import RegisteredTool, description_hash
from scenarios.formats.tool_registry import read_registry, registry_of

pytestmark = pytest.mark.spec("tool-forge", "Registries are read, not executed")

WEATHER = """
// name: 'wrong'
import { z } from 'zod'

/* description: 'wrong too' */
export const getWeatherTool: ToolDefinition = {
  name: 'get_weather',
  description: 'Retrieves current weather conditions for a city. ' +
    "Don't use it for forecasts.",
  schema: { city: { type: 'string', optional: false } },
  version: '1.2.0',
  status: "active",
  async execute({ city }) {
    return { name: 'inner', description: `of ${city}` }
  },
}
"""
FORECAST = (
    "export const getForecastTool = { name: `get_forecast`, description: `Later.`, schema: z.object({}) }"
)
BARREL = """
export { getWeatherTool } from './get-weather.tool'
export { getForecastTool as forecast } from "./get_forecast.tool.js"
// export { goneTool } from './gone.tool'
"""


def files(**changes):
    known = {
        "tools/tools.exports.ts": BARREL,
        "tools/get-weather.tool.ts": WEATHER,
        "tools/get_forecast.tool.ts": FORECAST,
    }
    texts = {**known, **changes}
    return {path: text.encode() for path, text in texts.items() if text is not None}


def with_tool(text):
    return read_registry({"a.tool.ts": text.encode()}, "a.tool.ts")


def test_it_reads_the_tools_of_a_barrel():
    found = read_registry(files(), "tools/tools.exports.ts")
    assert found.warnings == ()
    assert found.registry.size == 2
    assert found.registry.tools["get_weather"] == RegisteredTool(
        "Retrieves current weather conditions for a city. Don't use it for forecasts.",
        "1.2.0",
        {"city": {"type": "string", "optional": False}},
    )


def test_a_schema_that_is_computed_is_left_out():
    tools = read_registry(files(), "tools/tools.exports.ts").registry.tools
    assert tools["get_forecast"] == RegisteredTool("Later.", None, None)


@pytest.mark.parametrize("path", ["tools", "./tools/", "."], ids=["folder", "written otherwise", "root"])
def test_a_folder_is_read_by_its_barrel(path):
    assert read_registry(files(), path).registry.size == 2


def test_a_folder_without_barrel_is_read_by_its_tool_files():
    found = read_registry(files(**{"tools/tools.exports.ts": None, "tools/readme.ts": "x = 1"}), "tools")
    assert set(found.registry.tools) == {"get_weather", "get_forecast"}


def test_an_export_takes_only_the_tools_it_names():
    both = f"{WEATHER}\n{FORECAST}"
    barrel = "export { getForecastTool } from './both.tool'"
    found = read_registry(
        files(**{"tools/tools.exports.ts": barrel, "tools/both.tool.ts": both}), "tools/tools.exports.ts"
    )
    assert list(found.registry.tools) == ["get_forecast"]


def test_an_export_of_everything_takes_every_tool():
    both = f"{WEATHER}\n{FORECAST}"
    barrel = "export * from './both.tool'"
    found = read_registry(
        files(**{"tools/tools.exports.ts": barrel, "tools/both.tool.ts": both}), "tools/tools.exports.ts"
    )
    assert found.registry.size == 2


def test_a_file_that_is_missing_is_a_warning():
    found = read_registry(files(**{"tools/get-weather.tool.ts": None}), "tools")
    assert found.registry.size == 1
    assert found.warnings == (
        "tools/tools.exports.ts: There is no file './get-weather.tool', so its tools were left out.",
    )


def test_a_removed_tool_is_not_counted():
    found = read_registry(
        files(**{"tools/get-weather.tool.ts": WEATHER.replace("active", "removed")}), "tools"
    )
    assert list(found.registry.tools) == ["get_forecast"]


def test_a_computed_description_is_unknown():
    found = with_tool("export const a = { name: 'a', description: describe('x'), version: '1.0.0' }")
    assert found.registry.tools == {"a": RegisteredTool(None, "1.0.0")}


def test_a_computed_name_is_a_warning():
    found = with_tool("export const a = { name: NAME, description: 'x' }")
    assert found.registry is None
    assert "a.tool.ts: The name of a tool is computed, so it was left out." in found.warnings


def test_a_source_that_cannot_be_read_is_a_warning():
    found = with_tool("export const a = 'open")
    assert found.registry is None
    assert "a.tool.ts: Line 1 cannot be parsed." in found.warnings


def test_what_cannot_be_parsed_in_a_function_is_no_matter():
    body = "export const a = { name: 'a', description: 'x', run() { return @@ 3 } }"
    assert list(with_tool(body).registry.tools) == ["a"]


def test_tools_in_a_list_are_all_read():
    tools = "export const tools = [{ name: 'a', description: 'x' }, { name: 'b', description: 'y' }]"
    assert list(with_tool(tools).registry.tools) == ["a", "b"]


def test_exported_types_are_no_tools():
    barrel = f"export type {{ Tool }} from './types'\n{BARREL}"
    found = read_registry(files(**{"tools/tools.exports.ts": barrel}), "tools/tools.exports.ts")
    assert (found.registry.size, found.warnings) == (2, ())


@pytest.mark.parametrize("ending", ["js", "mjs"])
def test_a_javascript_module_is_read(ending):
    path = f"a.tool.{ending}"
    source = "module.exports = defineTool({ name: 'a', description: 'x' })"
    assert list(read_registry({path: source.encode()}, path).registry.tools) == ["a"]


def test_nothing_is_executed(tmp_path):
    target = tmp_path / "written"
    source = f"export const a = {{ name: 'a', description: 'x', schema: require('fs').writeFileSync('{target}', '') }}"
    assert with_tool(source).registry.size == 1
    assert not target.exists()


TOOL = {"name": "a", "description": "Does it.", "version": "1.0.0", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    "value",
    [
        [TOOL],
        {"tools": [TOOL]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL], "nextCursor": None}},
        [{"type": "function", "function": TOOL}],
    ],
    ids=["list", "tools", "MCP answer", "functions"],
)
def test_it_reads_json_registries(value):
    found = read_registry({"r.json": json.dumps(value).encode()}, "r.json")
    assert found.registry.tools == {"a": RegisteredTool("Does it.", "1.0.0", {"type": "object"})}


def test_an_entry_without_name_is_a_warning():
    found = registry_of([{"description": "x"}, "y", TOOL])
    assert found.registry.size == 1
    assert found.warnings == (
        "registry: Entry 1 has no name and was left out.",
        "registry: Entry 2 has no name and was left out.",
    )


def test_a_duplicate_name_is_a_warning():
    found = registry_of([TOOL, {**TOOL, "version": "2.0.0"}])
    assert found.registry.tools["a"].version == "2.0.0"
    assert found.warnings == (
        "registry: The registry defines the tool a more than once; the last definition is used.",
    )


def test_removed_entries_are_not_counted():
    assert registry_of([{**TOOL, "status": "removed"}]).registry.size == 0


@pytest.mark.parametrize("content", ["{}", '{"tools": 3}', "nothing"], ids=["empty", "no list", "no JSON"])
def test_json_without_tools_is_a_warning(content):
    found = read_registry({"r.json": content.encode()}, "r.json")
    assert found.registry is None
    assert found.warnings[0].startswith("r.json:")


def test_a_registry_that_is_not_there_is_a_warning():
    assert read_registry({}, "tools").warnings == ("There is no tool registry at tools.",)


def test_the_hash_covers_the_description_as_parsed():
    found = with_tool(r"export const a = { name: 'a', description: 'caf\u00e9' }")
    assert description_hash(found.registry.tools["a"].description) == description_hash("café")
