"""Two processes do what one does: every comparison of `test_pair.py`, measured by two forked processes.

Each case is trained in float64 by one process, by two with equal
weights (DDP) and, some of them, by two with shards (FSDP2); runs are stopped and resumed by another number of
processes; data sets are scored in shares. Rank 0 writes what it found to `found.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from closeness import smooth_steps
from safetensors.torch import save_file

from studies.faults.process import Exit, ForkedProcess, free_port, join_pair
from tracer.core.errors import AlreadyReported, UserError
from tracer.evaluation import measured
from tracer.evaluation.predict import Scorer
from tracer.methods.base import options
from tracer.models.acceleration import compile_towers
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import load, read_weights
from tracer.parallel import World
from tracer.parallel.replicated import Replicated
from tracer.parallel.sharded import Sharded
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.record import NullRecorder, read
from tracer.runs.run import Run
from tracer.training import loop as training
from tracer.training import setup
from tracer.training.checkpoint import _optimised
from tracer.training.learner import Learner
from tracer.training.step import State

COMPILED = "tracer-compiled"
STEPS, STOP = 3, 2  # steps, and the checkpoint behind which some runs are stopped
WORLDS = {"ddp": Replicated, "fsdp": Sharded}


def data(folder: Path) -> None:
    """Noise in three classes; 7 held-out images, a number that no two processes share evenly."""
    rng = np.random.default_rng(0)
    for name, count in (("train", 24), ("test", 7)):
        images = rng.integers(0, 256, (count, 28, 28, 3), np.uint8)
        np.savez(folder / f"{name}.npz", images=images, labels=np.arange(count) % 3)
    vision = {"image_size": 28, "layers": 2, "width": 8, "head_width": 8, "patch_size": 14}
    text = {"context_length": 16, "vocab_size": 49408, "width": 4, "heads": 1, "layers": 1}
    config = {"embed_dim": 4, "vision_cfg": vision, "text_cfg": text}
    (folder / "minute.json").write_text(json.dumps(config))
    (folder / "sigmoid.json").write_text(json.dumps({**config, "init_logit_bias": -10}))
    resnet = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 4}
    (folder / "resnet.json").write_text(json.dumps({**config, "vision_cfg": resnet}))


def experiment(folder: Path, method: str, *, regularizer: str | None = None, **asked: Any) -> Experiment:
    known = {option.name: option.default for option in options(method)}
    if "anchors" in known:
        asked = {"anchors": str(folder / "train.npz"), **asked}
    return Experiment(
        method=method,
        options={**known, **asked},
        data=str(folder / "train.npz"),
        held_out=str(folder / "test.npz"),
        retain=(str(folder / "test.npz"),),  # without any, every run would name emoji
        model=str(folder / "minute.json"),
        pretrained="none",
        templates="the thing {}",
        regularizer=regularizer,
        steps=STEPS,
        batch=8,
        lr=1e-3,
        clip=0.5,
        precision="fp32",
    )


def trained(asked: Experiment, folder: Path, world: World, stop: bool = False) -> None:
    """Train or resume into `folder`, perhaps to `stop` after a checkpoint; the first gradient is kept."""
    precision = folder.name.partition("-")[0]
    torch.set_default_dtype(torch.float32 if precision in ("single", "half") else torch.float64)
    world.bf16 = precision == "half"
    settled, build = plan(asked), training.build_learner

    def noting(*arguments: Any) -> Learner:
        learner = build(*arguments)
        state = learner.state
        state.optimiser.register_step_pre_hook(lambda *_: note_gradient(state, folder))
        return learner

    world.on_first_process(lambda: (folder / "experiment.json").exists() or Run.create(settled, folder))
    run = Run.open(folder)
    if not world.first:
        run.recorder = NullRecorder(run.recorder.path)
    training.build_learner = noting
    try:
        pace = {"save_every": STOP, "evaluate_every": STEPS}
        for report in training.Training(settled, run, world, **pace):
            if stop and report.step > STOP:
                break
    finally:
        training.build_learner = build


def note_gradient(state: State, folder: Path) -> None:
    file = folder / "gradient.safetensors"
    if state.step == 0:
        found = state.world.full_tensors(
            {n: p.grad for n, p in _optimised(state).items() if p.grad is not None}
        )
        if found and not file.exists():
            save_file({name: gradient.contiguous() for name, gradient in found.items()}, file)


def difference(one: Path, two: Path) -> float:
    """The largest absolute difference of two files of tensors; infinite if names or shapes differ."""
    mine, theirs = read_weights(one), read_weights(two)
    if {n: t.shape for n, t in mine.items()} != {n: t.shape for n, t in theirs.items()}:
        return float("inf")
    return max((mine[name].double() - theirs[name].double()).abs().max().item() for name in mine)


def compared(one: Path, two: Path) -> dict[str, float]:
    """Two runs side by side: losses of every step, held-out accuracies, gradient and all weights that were kept."""
    found = {}
    files = [folder / "log.jsonl" for folder in (one, two)]
    logs = [list(read(file)) if file.exists() else [] for file in files]  # zero-shot takes no step
    for key in ("loss", "accuracy", "weight_gap", "scale"):
        mine, theirs = ({entry["step"]: entry[key] for entry in log if key in entry} for log in logs)
        if key in ("loss", "scale"):  # evaluations depend on the time that they take
            assert mine.keys() == theirs.keys()
        apart = [abs(mine[step] - theirs[step]) for step in sorted(mine.keys() & theirs.keys())]
        found |= {key: max(apart, default=0.0)} | (
            {"first loss": apart[0]} if key == "loss" and apart else {}
        )
    for file in [*sorted((one / "weights").iterdir()), *one.glob("gradient.safetensors")]:
        found[file.stem] = difference(file, two / file.relative_to(one))
    return found


Cases = dict[str, Experiment]


def experiments(folder: Path, cases: Sequence[str]) -> Cases:
    """The methods and regularizers of these cases, and TRACER in other precisions and with less work."""
    found = {}
    for case in cases:
        name, _, kind = case.partition("-")
        if case == COMPILED:
            continue
        asked = {"targets": kind} if kind in ("pair", "class") else {"regularizer": kind or None}
        found[case] = experiment(folder, name, **asked)
    found |= {f"single-{kind}": found[f"tracer-{kind}"] for kind in ("pair", "class")}
    usual = found["tracer-class"]
    found["half-class"] = usual
    found["tracer-chunk"] = replace(usual, chunk=2)
    if COMPILED in cases:  # torch.compile takes half a minute of each process
        found[COMPILED] = replace(usual, compile=True)
    found["tracer-pairs"] = experiment(folder, "tracer", distill_pairs=2)
    sigmoid = {"model": str(folder / "sigmoid.json")}
    found |= {f"sigmoid-{name}": replace(found[f"tracer-{name}"], **sigmoid) for name in ("pair", "chunk")}
    found["tracer-batchnorm"] = replace(usual, model=str(folder / "resnet.json"), batchnorm="keep")
    found["tracer-last"] = experiment(folder, "tracer", tune="last-1")
    found["tracer-lora"] = replace(usual, adapter="lora:rank=2,factors=AB")
    found["tracer-prompts"] = replace(usual, adapter="prompts:image=2,text=2")
    return found


def shown(cases: Cases, kind: str) -> Cases:
    """The cases of one kind of world; shards are slow on a CPU, so they are shown on a few."""
    some = (*STOPPED, *THRIFTY, "stock", "half-class", "sigmoid-chunk")
    return cases if kind == "ddp" else {name: cases[name] for name in some if name in cases}


THRIFTY = (
    "tracer-chunk",
    COMPILED,
    "tracer-pairs",
    "tracer-last",
    "tracer-lora",
    "tracer-prompts",
)
STOPPED = ("tracer-class", "flyp-ftp", "lpft")  # a teacher, a regularizer with a memory, two stages
RESUMED = (("one", "ddp"), ("ddp", "one"), ("one", "fsdp"), ("fsdp", "one"))


def alone(folder: Path, cases: Cases, rank: int) -> None:
    """What one process does; the two share the work, each by itself."""
    world = World("cpu", "fp32")
    for index, (name, asked) in enumerate(cases.items()):
        if index % 2 == rank:
            trained(asked, folder / f"{name}-one", world)
            if name in STOPPED:
                for _, after in [pair for pair in RESUMED if pair[0] == "one"]:
                    trained(asked, folder / f"{name}-one-{after}", world, stop=True)


def side_by_side(folder: Path, cases: Cases, kind: str, world: World) -> dict[str, Any]:
    """What two processes do together."""
    for name, asked in shown(cases, kind).items():
        trained(asked, folder / f"{name}-{kind}", world)
        if name in STOPPED:
            trained(asked, folder / f"{name}-one-{kind}", world)
            trained(asked, folder / f"{name}-{kind}-one", world, stop=True)
    return {"scored": scored(folder, world), "refused": refused(world)}


def afterwards(folder: Path, cases: Cases) -> dict[str, Any]:
    """One process goes on where two were stopped; then all runs are compared."""
    found: dict[str, Any] = {}
    for name, asked in cases.items():
        one = folder / f"{name}-one"
        for kind in [kind for kind in WORLDS if name in shown(cases, kind)]:
            found[f"{name} {kind}"] = compared(one, folder / f"{name}-{kind}")
        if name in STOPPED:
            for before, after in RESUMED:
                place = folder / f"{name}-{before}-{after}"
                trained(asked, place, World("cpu", "fp32"))  # nothing is left to do where two have ended it
                found[f"{name} {before} to {after}"] = compared(one, place)
    found["half to single"] = compared(folder / "single-class-one", folder / "half-class-one")
    return found


def scored(folder: Path, world: World) -> dict[int, float]:
    """Sizes of data sets, and how far logits in shares are from those of one process."""
    student = load(str(folder / "minute.json"), seed=3)
    examples, found = plan(experiment(folder, "zeroshot")).train, {}
    for count in (1, 2, 3, 7, 24):
        some = examples.take(np.arange(count))
        whole = Scorer(student, World("cpu", "fp32")).predict(some, ("{}",)).logits
        shared = Scorer(student, world).predict(some, ("{}",)).logits
        found[count] = (whole - shared).abs().max().item() if whole.shape == shared.shape else float("inf")
    return found


def refused(world: World) -> dict[str, list[str]]:
    """How each process fares when the first one, the second one or both cannot go on."""

    def fail(ranks: tuple[int, ...]) -> None:
        if world.rank in ranks:
            raise UserError("no")

    told: dict[str, list[str]] = {}
    for name, ranks in {"first": (0,), "second": (1,), "both": (0, 1), "none": ()}.items():
        try:
            world.all_or_none(lambda ranks=ranks: fail(ranks))
            mine = 0
        except AlreadyReported:
            mine = 1
        except UserError:
            mine = 2
        everyone = world.collect(torch.tensor([mine]), world.size)
        told[name] = [("went on", "echoed", "said so")[code] for code in everyone.tolist()]
    return told


@smooth_steps()  # so that weights are as exact as gradients
def peer(folder: Path, chosen: Sequence[str], rank: int, ports: list[int]) -> int:
    os.fsync = lambda descriptor: None  # no power is cut here
    setup.compile_towers = partial(compile_towers, backend="eager")  # traced, without a minute of C++
    names = measured.known_names()[:5]
    measured.known_names = lambda: names
    open_clip.get_tokenizer = cache(open_clip.get_tokenizer)
    cases = experiments(folder, chosen)
    alone(folder, cases, rank)
    found: dict[str, Any] = {}
    for (kind, make), port in zip(WORLDS.items(), ports, strict=True):
        join_pair(rank, port)
        world = make("cpu", "fp32")
        found[kind] = side_by_side(folder, cases, kind, world)
        world.close()
    if rank == 0:
        (folder / "found.json").write_text(json.dumps({**found, "runs": afterwards(folder, cases)}))
    return 0


def measure(folder: Path, cases: Sequence[str]) -> list[Exit]:
    """Both processes, when they have ended."""
    data(folder)
    assert measured.known_names()  # imports open_clip once, before the fork
    ports = [free_port() for _ in WORLDS]
    peers = [ForkedProcess(partial(peer, folder, cases, rank, ports)) for rank in range(2)]
    return [each.wait(kill_after=inf) for each in peers]
