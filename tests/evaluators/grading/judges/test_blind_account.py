"""A judge of a lift sees what the agent did with the tool, and nothing that says whether it had a skill."""

from __future__ import annotations

import msgspec
import pytest

from evaluators.grading.judges.rubric import Criterion, RubricCriteria
from evaluators.grading.judges.rubric_judge import hide_skills, rubric_prompt
from evaluators.model import Event, FileUnavailable
from evaluators.tool_use.tool import Tool
from tests.evaluators.samples import events, evidence

RUBRIC = RubricCriteria(
    form="statements", criteria=(Criterion(id="ran", weight=1.0, description="The agent ran `t add`."),)
)
READ = ("cat .agents/skills/tool/SKILL.md", 0)
WORK = (("./t add --name x", 0), ("./t list --bad", 2))


class Files:
    """A workspace whose files are known."""

    def read(self, path: str) -> str:
        if path == "gone.txt":
            raise FileUnavailable("gone.txt is missing.")
        return f"text of {path}"


def prompt_of(
    *lines: tuple[str, int | None], tool: Tool | None = None, answer: str = "Added x.", files=("out.txt",)
):
    transcript = msgspec.structs.replace(
        events(*lines),
        events=(Event("message", role="assistant", text="I loaded the skill."), *events(*lines).events),
    )
    return rubric_prompt(
        RUBRIC,
        evidence(
            transcript,
            tool=tool,
            prompt="Add x",
            answer=answer,
            workspace=Files(),
            changed_files=files,
            hides_skill=True,
        ),
    )


@pytest.mark.parametrize("tool", [Tool(binary="t"), None])
def test_both_arms_look_the_same_to_the_judge(tool):
    skill = prompt_of(READ, *WORK, tool=tool, files=(".agents/skills/tool/cache.json", "out.txt"))
    assert skill == prompt_of(*WORK, tool=tool)
    assert "skill" not in skill.lower()


def test_the_judge_sees_commands_with_ends_changed_files_and_the_answer():
    prompt = prompt_of(READ, *WORK, tool=Tool(binary="t"), files=("out.txt", "gone.txt"))
    assert "add --name x [exit 0]" in prompt
    assert "list --bad [exit 2]" in prompt
    assert "out.txt\ntext of out.txt\ngone.txt\n" in prompt
    assert "Answer:\nAdded x." in prompt


def test_paths_of_skills_are_left_out_of_texts():
    text = "As `/home/agent/.claude/skills/tool/SKILL.md` says, see SKILL.md and skills/tool/ref.md; my skills are good."
    assert hide_skills(text) == "As `[…]` says, see […] and […] my skills are good."


def test_outside_a_lift_the_judge_sees_the_transcript():
    prompt = rubric_prompt(RUBRIC, evidence(events(READ, *WORK), prompt="Add x"))
    assert "[tool_call bash] cat .agents/skills/tool/SKILL.md" in prompt
