"""The models: one for each noun of the glossary; docs/architecture.md says what writes them."""

from runs.models.comparison import Alert, Annotation, Baseline, Change
from runs.models.job import BatchAnswer, Job, LeaseCheck, ProviderBatch, Worker
from runs.models.judging import JudgingRecord, Review
from runs.models.measure import GuidanceComparison, LaterMeasure, Measure, RunMeasure, SubcommandMeasure
from runs.models.notification import Channel, Delivery, Notification
from runs.models.price import ModelPrice
from runs.models.proof import ScenarioProof, SuiteProof
from runs.models.reassessment import ReassessedTrial, Reassessment
from runs.models.review import (
    DiagnosisReview,
    JudgeCalibration,
    Overrule,
    Resolution,
)
from runs.models.run import Launch, Run, RunSlot
from runs.models.target import Target, TargetCheck, TargetSlot, TargetTry, TargetVersion
from runs.models.trial import Artifact, CommandRecord, SearchEntry, TranscriptRecord, Trial, TrialAttempt
from runs.models.usage import FlagConfusion, ImportedSession, MetricCounter, ToolHelp

__all__ = [
    "Alert",
    "Annotation",
    "Artifact",
    "Baseline",
    "BatchAnswer",
    "Change",
    "Channel",
    "CommandRecord",
    "Delivery",
    "DiagnosisReview",
    "FlagConfusion",
    "GuidanceComparison",
    "ImportedSession",
    "Job",
    "JudgeCalibration",
    "JudgingRecord",
    "LaterMeasure",
    "Launch",
    "LeaseCheck",
    "Measure",
    "MetricCounter",
    "ModelPrice",
    "Notification",
    "Overrule",
    "ProviderBatch",
    "ReassessedTrial",
    "Reassessment",
    "Resolution",
    "Review",
    "Run",
    "RunMeasure",
    "RunSlot",
    "ScenarioProof",
    "SearchEntry",
    "SubcommandMeasure",
    "SuiteProof",
    "Target",
    "TargetCheck",
    "TargetSlot",
    "TargetTry",
    "TargetVersion",
    "ToolHelp",
    "TranscriptRecord",
    "Trial",
    "TrialAttempt",
    "Worker",
]
