"""Captured evidence in, every layer's scores out, nothing stored."""

from runs.grading.evidence import Grading
from runs.grading.grade import grade_by_files, grade_in_workspace

__all__ = ["Grading", "grade_by_files", "grade_in_workspace"]
