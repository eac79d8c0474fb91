"""Estimate how whole runs vary beyond their trials, such as by a model that its provider changes from day to day.

numpy and scipy are imported where they are used, because they would double the time in which a web process starts.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

USUAL_DRIFT = 0.08
"""The scale of the prior of the run-to-run standard deviation, a half-Cauchy distribution (Gelman 2006): small ones are
likely, large ones are not excluded. `tests/evaluators/statistics/simulated_lines.py` shows what it keeps."""
_LARGEST_DRIFT, _STEPS = 0.5, 80
"""The standard deviations that are weighed, denser near 0."""
_RANK = 1e-9
"""Directions with less than this share of the largest variance hold no information."""


class RunToRunVariance(NamedTuple):
    """The possible run-to-run standard deviations, from 0 to 1, and how likely each is."""

    deviations: NDArray[np.floating]
    weights: NDArray[np.floating]

    def tail(self, difference: float, trials: float, runs: float) -> float:
        """Return the two-sided p of a difference.

        Takes the variance that comes from trials, and what the run-to-run variance is multiplied with.
        """
        from scipy.special import ndtr

        errors = (self.deviations**2 * runs + trials) ** 0.5
        return min(1.0, float((self.weights * 2 * ndtr(-abs(difference) / errors)).sum()))

    def quantile(self, p: float, trials: float, runs: float) -> float:
        """Return the difference whose two-sided p this is."""
        from scipy.optimize import brentq

        farthest = 10 * sqrt(_LARGEST_DRIFT**2 * runs + trials)
        return float(
            brentq(lambda difference: self.tail(difference, trials, runs) - p, 0.0, farthest, xtol=1e-6)
        )

    @property
    def deviation(self) -> float:
        """The root of the expected run-to-run variance."""
        return sqrt(float((self.weights * self.deviations**2).sum()))


def run_to_run_variance(
    means: NDArray[np.floating], counts: NDArray[np.integer], variances: NDArray[np.floating]
) -> RunToRunVariance:
    """Return the posterior distribution of the standard deviation of whole runs.

    Takes each run's mean and trials of each scenario (by run and scenario, 0 trials where it lacks one), and the variance
    of one trial of each scenario. Its likelihood is the restricted one (REML, Patterson and Thompson 1971): of what is
    left of each run's mean after the runs' own level of each of its scenarios.
    """
    import numpy as np

    deviations = _LARGEST_DRIFT * (np.arange(_STEPS) / (_STEPS - 1)) ** 2
    residuals, drifting, noise = _residuals(means, counts, variances)
    logs = np.array([_log_likelihood(residuals, each**2 * drifting + noise) for each in deviations])
    # The steps grow with the deviation, so each stands for as much of the prior.
    steps = np.sqrt(deviations) + 0.5 * sqrt(_LARGEST_DRIFT) / (_STEPS - 1)
    weights = np.exp(logs - logs.max()) * steps / (1 + (deviations / USUAL_DRIFT) ** 2)
    return RunToRunVariance(deviations, weights / weights.sum())


def _residuals(
    means: NDArray[np.floating], counts: NDArray[np.integer], variances: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]:
    """Return each run's mean distance from the others, what a run-to-run variance of 1 adds to their covariance, and
    what trials do, all in the directions that hold information.
    """
    import numpy as np

    has, total = counts > 0, counts.sum(axis=0)
    shares = counts / total
    level = (means * shares).sum(axis=0)
    weights = has / has.sum(axis=1, keepdims=True)
    residuals = ((means - level) * weights).sum(axis=1)
    # How much each run's own effect, and its trials of a scenario, are in each residual.
    effects = np.eye(len(means)) - np.einsum("rs,qs->rq", weights, shares)
    own_noise = np.diag((weights**2 * variances / np.where(has, counts, 1)).sum(axis=1))
    # cov(e_r - mean, e_q - mean) of a scenario is its variance times (1/n_r if r is q) - 1/N.
    noise = own_noise - (weights * variances / total) @ weights.T
    drifting = effects @ effects.T
    values, vectors = np.linalg.eigh(drifting + noise / max(float(np.trace(noise)), _RANK))
    basis = vectors[:, values > _RANK * values.max()]
    return basis.T @ residuals, basis.T @ drifting @ basis, basis.T @ noise @ basis


def _log_likelihood(residuals: NDArray[np.floating], covariance: NDArray[np.floating]) -> float:
    import numpy as np

    _, determinant = np.linalg.slogdet(covariance)
    return -0.5 * float(determinant + residuals @ np.linalg.solve(covariance, residuals))
