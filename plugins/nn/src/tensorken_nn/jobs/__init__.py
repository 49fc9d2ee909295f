"""The jobs: trainings that come with their data, each a module with its settings and its recipe."""

from tensorken_nn.jobs.job import Job, Sampler
from tensorken_nn.jobs.table import JOBS

__all__ = ["JOBS", "Job", "Sampler"]
