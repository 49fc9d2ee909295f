"""The table of jobs."""

from __future__ import annotations

from tensorken_nn.jobs import bigrams, classifier, digits, names, regressions, shakespeare
from tensorken_nn.jobs.installed import Jobs
from tensorken_nn.jobs.job import Job
from tensorken_nn.text import Vocabulary

OWN = {
    "bigrams": Job(
        "count which characters follow each other in names",
        bigrams.Settings,
        bigrams.prepare,
        lambda settings, facts: bigrams.Bigrams(Vocabulary(facts["characters"]), settings.smoothing),
    ),
    "classifier": Job("predict classes from a CSV file", classifier.Settings, classifier.prepare),
    "digits": Job("read handwritten digits, 8 x 8 pixels", digits.Settings, digits.prepare),
    "linear": Job("fit a linear function", regressions.Linear, regressions.prepare_linear),
    "names": Job(
        "draw new given names",
        names.Settings,
        names.prepare,
        lambda settings, facts: names.Names(settings, Vocabulary(facts["characters"]), facts["longest"]),
    ),
    "nonlinear": Job(
        "fit a function with a jump by a network of ten layers",
        regressions.Nonlinear,
        regressions.prepare_nonlinear,
    ),
    "shakespeare": Job(
        "write like Shakespeare, character by character, with a small GPT",
        shakespeare.Settings,
        shakespeare.prepare,
        lambda settings, facts: shakespeare.Writer(settings, Vocabulary(facts["characters"])),
        count=500,
    ),
}
"""Our jobs by name."""

JOBS = Jobs(OWN)
"""All jobs by name."""
