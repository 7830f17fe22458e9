"""Shapes and types of the pure core are checked in every test; models that many tests share are built once."""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config, install_import_hook
from typechecking import next_test

CHECKED = (
    *(
        f"tracer.core.{name}"
        for name in ("kernels", "teachers", "shadow", "objective", "terms", "metrics", "dynamics")
    ),
    "studies.theory",
)
install_import_hook(list(CHECKED), "typechecking.checked")  # before the first import

# A busy machine is no failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Some virtual machines announce AMX and do not execute it. oneDNN reads this when it is first used.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
torch.set_num_threads(int(os.environ.get("TEST_THREADS", "1")))  # the tests themselves run side by side


# Tests write below a folder whose path has a space and the package's own name, and have a home of their own: what
# holds only in some folders or only for some users fails at once.
PLACE = Path(tempfile.gettempdir()) / f"tests of {os.getuid()}" / "tracer"
os.environ["PYTEST_DEBUG_TEMPROOT"] = str(PLACE)
os.environ["HOME"] = str(PLACE / "home")
(PLACE / "home").mkdir(parents=True, exist_ok=True)
for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HF_HOME", "TORCH_HOME"):
    os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Imports make a million objects that stay: no garbage is looked for among them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of modules that compare by `closeness` are marked: `make test-exact` runs them on other instructions."""
    for item in items:
        names = vars(item.module).values() if isinstance(item, pytest.Function) else ()
        if any(getattr(each, "__module__", getattr(each, "__name__", "")) == "closeness" for each in names):
            item.add_marker("exact")


@pytest.fixture(autouse=True)
def checked_anew() -> None:
    """The first calls of every function are checked in every test."""
    next_test()


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run alone, which test processes side by side share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # beside that lie older runs


@pytest.fixture(scope="session", autouse=True)
def own_cache(common: Path) -> None:
    """Scans are cached with the tests, not with the user."""
    os.environ["TRACER_CACHE"] = str(common / "cache")


@pytest.fixture(scope="session", autouse=True)
def few_names() -> None:
    """Models are compared over two dozen names of ImageNet instead of a thousand: the same path in less time."""
    from tracer.evaluation import measured

    names = measured.known_names
    measured.known_names = lambda: names()[:24]  # late: open_clip is slow to import, and most tests need none


@pytest.fixture(scope="session")
def some_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A NumPy archive of 120 embedded digits: every command takes less time than with all 10 000."""
    from tracer.data.embedded.digits import digits

    examples, path = digits("train"), tmp_path_factory.mktemp("digits") / "some.npz"
    images = np.stack([np.asarray(examples.images[i]) for i in range(120)])
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    np.savez(path, images=images, labels=names[examples.labels[:120]])
    return path


@pytest.fixture(scope="session")
def minute_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a CLIP of two narrow layers a tower, for tests that train many times."""
    vision = {"image_size": 28, "layers": 2, "width": 16, "head_width": 8, "patch_size": 14}
    text = {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 2}
    path = tmp_path_factory.mktemp("models") / "minute.json"
    path.write_text(json.dumps({"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}))
    return path


@pytest.fixture(scope="session")
def shared_student():
    """A tiny-28 with random weights, in eval mode: for tests that only look."""
    from tracer.models.student import load

    return load("tiny-28", seed=3).eval().requires_grad_(False)


@pytest.fixture
def student():
    """A tiny-28 of a test's own, to train and to spoil."""
    from tracer.models.student import load

    return load("tiny-28", seed=3)


@pytest.fixture(scope="session")
def minute(minute_model: Path) -> str:
    """The name of that model, as `load` takes it."""
    return str(minute_model)


@pytest.fixture
def unchecked():
    """For tests that hand in wrong shapes on purpose, to see what a user without the checker sees."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
