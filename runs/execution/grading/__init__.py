"""Captured evidence in, every layer's scores out, nothing stored."""

from runs.execution.grading.evidence import Grading
from runs.execution.grading.grade import grade_by_files, grade_in_workspace

__all__ = ["Grading", "grade_by_files", "grade_in_workspace"]
