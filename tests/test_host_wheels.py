"""The plugin host with real wheels, installed by pip.

Plugins older and newer than the core, plugins that come and go while a program runs, a plugin that brings ops.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pluggy
import pytest

import tensorken
import tensorken_cli
import tensorken_core

ROOT = Path(__file__).parents[1]

BACKEND = """
import sys
from tensorken_core.host.plugin import BackendEntry, hookimpl

@hookimpl
def tensorken_backend():
    def load(device=None):
        from tensorken_reference.backend import Reference
        return Reference()
    return BackendEntry({name!r}, load, spec={spec!r})
"""

OPS = '''
"""An op with a derivative and one without."""
import tensorken as tk
from tensorken_core.host.plugin import hookimpl
from tensorken_core.language import dtype_rules, shapes
from tensorken_core.language.op import Op

def slope(t, y, x):
    return t * (3 * x * x)

CUBE = Op(
    "cube", 1, shapes.same, dtype_rules.floating,
    jvp=(slope,), vjp=(slope,), body=lambda x: x * x * x, scalar=lambda x: x**3, elementwise=True,
)
STAIRS = Op("stairs", 1, shapes.same, dtype_rules.floating, body=lambda x: tk.floor(x * 2) / 2)

@hookimpl
def tensorken_ops():
    return [CUBE, STAIRS]

def cube(x):
    return x.apply(CUBE)

def stairs(x):
    return x.apply(STAIRS)
'''


EXIT, SKIP = "raise SystemExit(0)", "class Skipped(BaseException): ...\nraise Skipped"
NEVER = "import time\nwhile True:\n    time.sleep(1)"
WORKS = BACKEND.format(name="numpy", spec=">=1.0,<2")

HOSTILE: list[tuple[str, str, str]] = [
    # entry points (hostile.py is their module), its source, and the core that it needs
    ("[tensorken.backends]\nnumpy = hostile", WORKS, ""),
    ("[tensorken.backends]\nNumPy = hostile", WORKS, ">=1"),
    (
        "[tensorken.backends]\nnumpy = hostile\nreference = hostile\nwgpu = hostile\nstring = hostile",
        WORKS,
        "",
    ),
    ("[tensorken.backends]\nreference = hostile", WORKS, ""),
    ("[tensorken.backends]\nnumpy = hostile\nNUMPY = hostile:other", WORKS, ""),
    ("[tensorken.backends]\nnumpy = not a module", WORKS, ""),
    ("[tensorken.backends]\nnumpy = hostile", WORKS, "<0.1"),
    ("[tensorken.backends]\nnumpy = hostile", WORKS, ">=99"),
    ("[tensorken.backends]\nnumpy = no_such_module", "", ""),
    ("[tensorken.backends]\nnumpy = hostile", "1 / 0", ""),
    ("[tensorken.backends]\nnumpy = hostile", EXIT, ""),
    ("[tensorken.backends]\nnumpy = hostile", "import os\nos._exit(0)", ""),
    ("[tensorken.backends]\nnumpy = hostile", NEVER, ""),
    ("[tensorken.backends]\nnumpy = hostile", SKIP, ""),
    ("[tensorken.backends]\nnumpy@tensorken-numpy = hostile\nnumpy,reference = hostile", WORKS, ""),
    ("[tensorken.backends]\n = hostile\n\uff4eumpy = hostile\nnump\u0443 = hostile", WORKS, ""),
    (f"[tensorken.backends]\n{'n' * 20_000} = hostile\nnone = hostile\ndefault = hostile", WORKS, ""),
    ("[tensorken.commands]\ntrain = hostile:x\nbackends = hostile:x\ndoctor = hostile:x", EXIT, ""),
    ("[tensorken.namespace]\ntensor = hostile:x\nprofile = hostile:x\njit = hostile:x", "x = None", ""),
    ("[tensorken.plugins]\nnumpy = hostile\ntensorken-numpy = hostile", EXIT, ""),
]
"""Distributions that try to take the place of ours, or to keep ours from working."""


def modules(package: Path) -> dict[str, bytes]:
    """The files of a package, by their names in a wheel."""
    files = (file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {f"{package.name}/{file.relative_to(package).as_posix()}": file.read_bytes() for file in files}


class Warehouse:
    """A folder of wheels, written without a build tool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def wheel(
        self,
        name: str,
        version: str,
        files: dict[str, bytes],
        *requirements: str,
        entry_points: str = "",
    ) -> Path:
        stem = f"{name.replace('-', '_')}-{version}"
        metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        metadata += [f"Requires-Dist: {requirement}" for requirement in requirements]
        tags = ["Wheel-Version: 1.0", "Generator: tests", "Root-Is-Purelib: true", "Tag: py3-none-any"]
        contents = {
            **files,
            f"{stem}.dist-info/METADATA": "\n".join([*metadata, ""]).encode(),
            f"{stem}.dist-info/WHEEL": "\n".join([*tags, ""]).encode(),
            f"{stem}.dist-info/entry_points.txt": entry_points.encode(),
        }
        record = [
            f"{file},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
            for file, data in contents.items()
        ]
        record.append(f"{stem}.dist-info/RECORD,,\n")
        path = self.folder / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for file, data in contents.items():
                archive.writestr(file, data)
            archive.writestr(f"{stem}.dist-info/RECORD", "\n".join(record))
        return path

    def core(self, version: str) -> list[Path]:
        """The core as if it were of this version, and what it needs."""
        assert pluggy.__file__
        assert tensorken_core.__file__
        assert tensorken.__file__
        assert tensorken_cli.__file__
        return [
            self.wheel(
                "tensorken-core",
                version,
                modules(Path(tensorken_core.__file__).parent) | modules(Path(tensorken_cli.__file__).parent),
                "pluggy>=1.5",
            ),
            self.wheel("tensorken", version, modules(Path(tensorken.__file__).parent), "tensorken-core"),
            self.wheel("pluggy", pluggy.__version__, modules(Path(pluggy.__file__).parent)),
        ]

    def reference(self, version: str = "1.0") -> Path:
        """The backend that the others stand on."""
        files = modules(ROOT / "backends" / "reference" / "src" / "tensorken_reference")
        points = "[tensorken.backends]\nreference = tensorken_reference.plugin\n"
        return self.wheel("tensorken-reference", version, files, "tensorken-core", entry_points=points)

    def backend(self, name: str, version: str = "1.0", needs: str = "", spec: str = ">=1.0,<2") -> Path:
        """A backend that computes as reference does."""
        module = f"fake_{name}"
        files = {f"{module}.py": BACKEND.format(name=name, spec=spec).encode()}
        points = f"[tensorken.backends]\n{name} = {module}\n"
        return self.wheel(f"dist-{name}", version, files, f"tensorken-core{needs}", entry_points=points)

    def numpy(self) -> Path:
        """The default backend, as far as its metadata go: it computes as reference does."""
        files = {"fake_numpy.py": BACKEND.format(name="numpy", spec=">=1.0,<2").encode()}
        points = "[tensorken.backends]\nnumpy = fake_numpy\n"
        return self.wheel("tensorken-numpy", "1.0", files, "tensorken-core", entry_points=points)

    def ops(self) -> Path:
        points = "[tensorken.plugins]\nops = fake_ops\n"
        return self.wheel(
            "dist-ops", "1.0", {"fake_ops.py": OPS.encode()}, "tensorken-core", entry_points=points
        )


class Place:
    """Where wheels are installed: an environment without a network."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    def pip(self, *arguments: str) -> None:
        self._run("-m", "pip", "--isolated", "--disable-pip-version-check", "--quiet", *arguments)

    def install(self, *wheels: Path) -> None:
        self.pip("install", "--no-index", "--no-deps", "--force-reinstall", *map(str, wheels))

    def tensorken(self, *arguments: str) -> str:
        return self._run("-m", "tensorken_cli", *arguments)

    def execute(self, program: str, **variables: str) -> str:
        return self._run("-c", textwrap.dedent(program), **variables)

    def _run(self, *arguments: str, **variables: str) -> str:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TENSORKEN_", "PYTHON"))}
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env={**inherited, "PYTHONIOENCODING": "utf-8", **variables},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("place")
    subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", str(folder)], check=True)
    return Place(folder)


@pytest.fixture
def place(environment: Place) -> Iterator[Place]:
    """The environment, empty at the start of each test."""
    yield environment
    environment.pip(
        "uninstall",
        "--yes",
        "tensorken-core",
        "tensorken-reference",
        "tensorken-numpy",
        *(f"dist-{n}" for n in ("ops", "toy", "other")),
        *(f"hostile-{i}" for i in range(len(HOSTILE))),
    )


def listed(place: Place) -> dict[str, str]:
    """The status of each backend, as the command tells it."""
    data = json.loads(place.tensorken("backends", "--json"))
    return {backend["name"]: f"{backend['status']}: {backend['reason']}" for backend in data["backends"]}


SELECT = """
import sys
import tensorken as tk

try:
    tk.tensor([1.0], backend="toy")
except tk.errors.BackendError as error:
    print(error)
print("fake_toy" in sys.modules)
x = tk.tensor([1.0, 2.0])
print((x + x).tolist(), x.backend)
"""


@pytest.mark.feature(201)
def test_a_wheel_that_is_installed_appears_and_computes(place: Place, warehouse: Warehouse) -> None:
    place.install(*warehouse.core("1.4.2"), warehouse.reference(), warehouse.backend("toy", needs=">=1.4,<2"))
    assert listed(place) == {"reference": "available: ", "toy": "available: "}
    program = "import tensorken as tk\nx = tk.tensor([1.0, 2.0])\nprint((x @ x).item(), x.backend, x.device)"
    assert place.execute(program) == "5.0 reference cpu\n"
    assert place.execute(program, TENSORKEN_BACKEND="Toy") == "5.0 toy cpu\n"


def test_an_old_plugin_on_a_new_core_is_refused_before_its_import(place: Place, warehouse: Warehouse) -> None:
    place.install(*warehouse.core("2.0.0"), warehouse.reference(), warehouse.backend("toy", needs=">=1.0,<2"))
    reason = "it needs tensorken-core >=1.0,<2, this is 2.0.0; pip install -U dist-toy"
    assert listed(place) == {"reference": "available: ", "toy": f"incompatible: {reason}"}
    assert place.execute(SELECT).splitlines() == [
        f"backend 'toy' of dist-toy 1.0 cannot be loaded: {reason}",
        "  chosen by backend='toy'",
        "False",
        "[2.0, 4.0] reference",
    ]


def test_a_new_plugin_on_an_old_core_is_refused_before_its_import(place: Place, warehouse: Warehouse) -> None:
    place.install(*warehouse.core("1.0.0"), warehouse.reference(), warehouse.backend("toy", "3.0", ">=2.1"))
    reason = "it needs tensorken-core >=2.1, this is 1.0.0; pip install -U tensorken-core"
    assert listed(place) == {"reference": "available: ", "toy": f"incompatible: {reason}"}
    assert place.execute(SELECT).splitlines() == [
        f"backend 'toy' of dist-toy 3.0 cannot be loaded: {reason}",
        "  chosen by backend='toy'",
        "False",
        "[2.0, 4.0] reference",
    ]


@pytest.mark.parametrize(("spec", "older"), [("<1.0", "dist-toy"), (">=2,<3", "tensorken-core")])
def test_a_plugin_for_another_language_is_refused_before_it_loads(
    place: Place, warehouse: Warehouse, spec: str, older: str
) -> None:
    place.install(*warehouse.core("1.0"), warehouse.reference(), warehouse.backend("toy", spec=spec))
    told = place.execute(SELECT).splitlines()
    assert told[0].endswith(
        f"it needs the language version {spec}, but this core has 1.0; pip install -U {older}"
    )
    assert told[2:] == ["True", "[2.0, 4.0] reference"]  # the module is imported to ask it, and that is all


def test_a_backend_uninstalled_while_selected(place: Place, warehouse: Warehouse) -> None:
    toy = warehouse.backend("toy")
    place.install(*warehouse.core("1.0"), warehouse.reference(), toy)
    program = """
        import subprocess, sys
        import tensorken as tk

        def pip(*arguments):
            command = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--quiet"]
            subprocess.run([*command, *arguments], check=True)

        tk.use_backend("toy")
        x = tk.tensor([1.0, 2.0])
        pip("uninstall", "--yes", "dist-toy")
        print((x * x).tolist(), x.backend, [record.name for record in tk.backends()])
        for choose in (lambda: tk.tensor([1.0], backend="toy"), lambda: x.to("toy"), lambda: tk.use_backend("toy")):
            try:
                choose()
                print("no error")
            except tk.errors.UnknownBackendError as error:
                print(str(error).splitlines()[0])
        print(tk.grad(lambda x: (x * x).sum())(x).tolist(), (x + tk.tensor([1.0, 1.0])).tolist())
        print((x.to("reference") + tk.tensor([1.0, 1.0], backend="reference")).tolist())
        pip("install", "--no-index", "--no-deps", sys.argv[1])
        print((x + tk.tensor([1.0, 1.0], backend="toy")).tolist())
        """.replace("sys.argv[1]", repr(str(toy)))
    gone = "backend 'toy' is no longer installed; tensors made with it keep working"
    assert place.execute(program).splitlines() == [
        "[1.0, 4.0] toy ['reference', 'toy']",
        gone,
        gone,
        gone,
        "[2.0, 4.0] [2.0, 3.0]",
        "[2.0, 3.0]",
        "[2.0, 3.0]",
    ]


def test_a_backend_installed_while_the_program_runs(place: Place, warehouse: Warehouse) -> None:
    toy = warehouse.backend("toy")
    place.install(*warehouse.core("1.0"), warehouse.reference())
    program = f"""
        import subprocess, sys
        import tensorken as tk

        assert tk.tensor([1.0]).backend == "reference"
        try:
            tk.use_backend("toy")
        except tk.errors.UnknownBackendError as error:
            print(str(error).splitlines()[0])
        command = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*command, "install", "--no-index", "--no-deps", {str(toy)!r}], check=True)
        tk.use_backend("toy")
        print(tk.tensor([1.0]).backend, [record.name for record in tk.backends()])
        """
    assert place.execute(program).splitlines() == ["unknown backend 'toy'", "toy ['reference', 'toy']"]


@pytest.mark.nightly
def test_an_upgrade_replaces_the_old_record(place: Place, warehouse: Warehouse) -> None:
    place.install(*warehouse.core("1.0"), warehouse.reference(), warehouse.backend("toy", "1.0", "<1"))
    assert listed(place)["toy"].startswith("incompatible")
    place.install(warehouse.backend("toy", "2.0", ">=1"))
    assert listed(place) == {"reference": "available: ", "toy": "available: "}


@pytest.mark.feature(106)
def test_a_plugin_brings_an_op_with_a_derivative_and_one_without(place: Place, warehouse: Warehouse) -> None:
    place.install(*warehouse.core("1.0"), warehouse.reference(), warehouse.ops())
    program = """
        import sys
        import tensorken as tk
        from tensorken_core.host.registry import load_plugins
        from tensorken_core.language.op import OPS

        print("fake_ops" in sys.modules, "cube" in OPS)
        print([(record.name, record.distribution, record.status) for record in load_plugins()])
        from fake_ops import cube, stairs
        import fake_ops
        print(OPS["cube"] is fake_ops.CUBE, OPS["stairs"] is fake_ops.STAIRS)
        x, t = tk.tensor([1.0, 2.5, -0.75]), tk.tensor([1.0, 2.0, 4.0])
        print(cube(x).tolist(), stairs(x).tolist())
        print(tk.grad(lambda x: cube(x).sum())(x).tolist())
        print([y.tolist() for y in tk.jvp(cube, (x,), (t,))])
        print((tk.hessian(lambda x: cube(x).sum())(x) + 0.0).tolist())
        tk.testing.check_grads(cube, (x.astype(tk.float64),), order=2, modes=("fwd", "rev"))
        print(tk.grad(lambda x: stairs(x).sum())(x).tolist(), tk.grad(lambda x: (x * stairs(x)).sum())(x).tolist())
        """
    assert place.execute(program).splitlines() == [
        "False False",
        "[('ops', 'dist-ops', 'available')]",
        "True True",
        "[1.0, 15.625, -0.421875] [1.0, 2.5, -1.0]",
        "[3.0, 18.75, 1.6875]",
        "[[1.0, 15.625, -0.421875], [3.0, 37.5, 6.75]]",
        "[[6.0, 0.0, 0.0], [0.0, 15.0, 0.0], [0.0, 0.0, -4.5]]",
        "[0.0, 0.0, 0.0] [1.0, 2.5, -1.0]",
    ]


CHOICES = """
import os, sys
import tensorken as tk
from tensorken_core.host.loading import Registry
from tensorken_core.host.backend_choice import Selection

def chosen(selection):
    found = [str(selection.default_backend()), *selection.name_of(selection.resolve())]
    for text in ("numpy", " NumPy", "numpy:cpu", "numpy:0", "numpy@tensorken-numpy", "numpy,reference", "reference"):
        found += [text, *selection.name_of(selection.resolve(text))]
        os.environ["TENSORKEN_BACKEND"] = text
        found += [str(selection.use_backend(None).choice), *selection.name_of(selection.resolve())]
        del os.environ["TENSORKEN_BACKEND"]
        selection.use_backend(None)
    return found
"""


@pytest.mark.nightly
def test_no_installation_changes_what_the_default_and_explicit_choices_mean(
    place: Place, warehouse: Warehouse
) -> None:
    """Twenty hostile wheels, each alone and all together: the default and the names of ours mean what they meant."""
    assert len(HOSTILE) == 20
    wheels = [
        warehouse.wheel(
            f"hostile-{i}",
            "1.0",
            {"hostile.py": source.encode()},
            f"tensorken-core{needs}",
            entry_points=points,
        )
        for i, (points, source, needs) in enumerate(HOSTILE)
    ]
    place.install(*warehouse.core("1.4.2"), warehouse.reference(), warehouse.numpy())
    before = "from tensorken_core.host.registry import SELECTION; print(chosen(SELECTION))"
    expected = place.execute(CHOICES + before)
    assert expected.startswith("['numpy (the default: the first installed of numpy, ")
    alone = f"""
for wheel in {[str(wheel) for wheel in wheels]!r}:
    registry = Registry([*sys.path, wheel])
    assert sum(len(registry.records(group)) for group in ("backends", "plugins", "commands", "namespace")) > 2, wheel
    print(chosen(Selection(registry)))
"""
    assert place.execute(CHOICES + alone).splitlines() == [expected.strip()] * len(wheels)
    place.install(*wheels)
    together = """
x = tk.tensor([1.0, 2.0])
assert tk.jit(lambda x: x @ x)(x).item() == 5.0 and x.backend == "numpy"
"""
    assert place.execute(CHOICES + before + together) == expected
    data = json.loads(place.tensorken("backends", "--json"))
    assert data["default"]["name"] == "numpy"
    ours = [b for b in data["backends"] if b["distribution"].startswith("tensorken-")]
    assert [(b["name"], b["status"]) for b in ours] == [("numpy", "available"), ("reference", "available")]
    stranger = next(b for b in data["backends"] if b["distribution"] == "hostile-0")
    assert stranger["status"] == "clash"
    assert stranger["reason"] == "the name belongs to tensorken-numpy; write numpy@hostile-0 for this one"
