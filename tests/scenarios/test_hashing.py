import pytest

from evaluators.grading.evaluate import Criteria
from evaluators.grading.gates.file_gates import FileExists
from evaluators.grading.judges.rubric import Criterion, JudgeCriteria, RubricCriteria
from evaluators.tool_use.tool import McpServer, Tool
from scenarios.formats.parsed import FixtureFile, ParsedSuite
from scenarios.guidance import is_tool_file
from scenarios.spec import Cost, ScenarioSpec, TrialLimits
from scenarios.storing import (
    content_hash,
    fixture_hash,
    gates_hash,
    guidance_hash,
    judge_hash,
    rubric_hash,
    scenario_hash,
    suite_hash,
    task_fixture_hash,
    task_hash,
)

SPEC = ScenarioSpec(key="a", prompt="x", fixture="f", criteria=Criteria(tool=Tool(binary="t")))
RUBRIC = RubricCriteria(name="r.yaml", criteria=(Criterion(id="a", weight=1),))
JUDGE = JudgeCriteria(rubric=RUBRIC, pass_threshold=0.5)
CRITERIA = Criteria(gates=(FileExists(path="x"),), judge=JUDGE)


def spec(**changes):
    return SPEC.model_copy(update=changes)


def with_tool(**changes):
    return spec(criteria=Criteria(tool=Tool(binary="t").model_copy(update=changes)))


def test_the_order_of_keys_does_not_count():
    assert content_hash({"a": 1, "b": [1, 2]}) == content_hash({"b": [1, 2], "a": 1})
    assert content_hash([1, 2]) != content_hash([2, 1])


SAME_TASK = {
    "key": spec(key="b"),
    "tags": spec(tags=("t",)),
    "tier": spec(tier=3),
    "cost": spec(cost=Cost(max_usd=1)),
    "place": spec(file="other.yaml", line=9),
    "name of the fixture": spec(fixture="g"),
    "health check": with_tool(health_check="t --help"),
    "command pattern": with_tool(command_pattern="t"),
    "the MCP server's command": with_tool(mcp=McpServer(name="n", command="x")),
    "the tool's files": with_tool(files=("lib/**",)),
    "gates": spec(criteria=Criteria(tool=Tool(binary="t"), gates=(FileExists(path="x"),))),
}
OTHER_TASK = {
    "prompt": spec(prompt="y"),
    "setup": spec(setup=("x",)),
    "limits": spec(limits=TrialLimits(timeout_seconds=1)),
    "environment": with_tool(env={"A": "1"}),
}


@pytest.mark.parametrize("other", SAME_TASK.values(), ids=SAME_TASK)
def test_the_task_is_the_same(other):
    assert task_hash(other, "1") == task_hash(SPEC, "1")


@pytest.mark.parametrize("other", OTHER_TASK.values(), ids=OTHER_TASK)
def test_the_task_is_another(other):
    assert task_hash(other, "1") != task_hash(SPEC, "1")


def test_another_fixture_is_another_task():
    assert task_hash(SPEC, "1") != task_hash(SPEC, "2")


def test_gates_rubric_and_judge_have_separate_hashes():
    other_gates = CRITERIA.model_copy(update={"gates": ()})
    other_judge = JUDGE.model_copy(update={"pass_threshold": 0.6})
    other_rubric = RUBRIC.model_copy(update={"criteria": (Criterion(id="a", weight=2),)})
    assert gates_hash(CRITERIA) != gates_hash(other_gates)
    assert gates_hash(CRITERIA) == gates_hash(CRITERIA.model_copy(update={"judge": other_judge}))
    assert judge_hash(JUDGE) != judge_hash(other_judge)
    assert judge_hash(JUDGE) == judge_hash(JUDGE.model_copy(update={"rubric": other_rubric}))
    assert rubric_hash(RUBRIC) != rubric_hash(other_rubric)
    assert rubric_hash(RUBRIC) == rubric_hash(RUBRIC.model_copy(update={"name": "moved.yaml"}))
    assert judge_hash(None) == ""


def test_a_fixture_is_hashed_without_its_guidance():
    rest = (FixtureFile("a.sh", b"x", executable=True),)
    guided = (FixtureFile("AGENTS.md", b"1"), *rest)
    assert fixture_hash(guided) == fixture_hash(rest)
    assert fixture_hash(rest) != fixture_hash((FixtureFile("a.sh", b"x"),))
    assert guidance_hash(rest) == guidance_hash((FixtureFile("a.sh", b"x"),))


def test_a_scenario_version_ignores_file_and_line():
    assert scenario_hash(spec(file="b.yaml", line=7)) == scenario_hash(SPEC)
    assert scenario_hash(spec(tags=("t",))) != scenario_hash(SPEC)


TWO = (SPEC, spec(key="b"))


def suite(scenarios=TWO, **more):
    fixtures = {"f": (FixtureFile("AGENTS.md", b"1"), FixtureFile("a", b"1"))}
    return ParsedSuite("s", "llm_tool_test", scenarios, **({"fixtures": fixtures} | more))


def test_changed_guidance_keeps_the_suite_version():
    other = {"f": (FixtureFile("AGENTS.md", b"2"), FixtureFile("a", b"1"))}
    assert suite_hash(suite(fixtures=other)) == suite_hash(suite())


OTHER_SUITES = {
    "order": suite(scenarios=(spec(key="b"), SPEC)),
    "fixture": suite(fixtures={"f": (FixtureFile("a", b"2"),)}),
    "settings": suite(settings={"profiles": {}}),
}


@pytest.mark.parametrize("other", OTHER_SUITES.values(), ids=OTHER_SUITES)
def test_other_content_is_another_suite_version(other):
    assert suite_hash(other) != suite_hash(suite())


FILES = (
    FixtureFile("taskmgr", b"v1", executable=True),
    FixtureFile("lib/core.py", b"v1"),
    FixtureFile("data/tasks.json", b"[]"),
)


@pytest.mark.parametrize("binary", ["taskmgr", "./taskmgr"])
def test_another_version_of_the_tool_is_no_other_task(binary):
    tool = Tool(binary=binary, files=("lib/**",))
    newer = (FixtureFile("taskmgr", b"v2"), FixtureFile("lib/core.py", b"v2"), FILES[2])
    assert task_fixture_hash(FILES, tool) == task_fixture_hash(newer, tool)
    assert task_fixture_hash(FILES, Tool(binary=binary)) != task_fixture_hash(newer, Tool(binary=binary))
    assert task_fixture_hash(FILES, None) != task_fixture_hash(newer, None)


def test_other_data_beside_the_tool_is_another_task():
    tool = Tool(binary="taskmgr")
    newer = (*FILES[:2], FixtureFile("data/tasks.json", b"[1]"))
    assert task_fixture_hash(FILES, tool) != task_fixture_hash(newer, tool)


@pytest.mark.parametrize(
    ("binary", "is_tool"), [("tool", True), ("bin/tool", True), ("data/tool", False), ("tool.txt", False)]
)
def test_a_binary_is_the_tool_at_the_root_or_in_bin(binary, is_tool):
    assert is_tool_file(binary, Tool(binary="tool")) is is_tool
