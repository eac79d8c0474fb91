"""Grades captured evidence without storing anything."""

from runs.engine.grading.evidence import Grading
from runs.engine.grading.grade import grade_by_files, grade_in_workspace

__all__ = ["Grading", "grade_by_files", "grade_in_workspace"]
