"""Jobs: ready-made training tasks, each a module with its data, settings and model."""

from tensorken_nn.jobs.job import Job, Sampler
from tensorken_nn.jobs.table import JOBS

__all__ = ["JOBS", "Job", "Sampler"]
