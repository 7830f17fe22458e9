"""`tracer merge` from the run's folder to weights that evaluate and export, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import closeness
import numpy as np
import pytest
import torch
from closeness import length
from merging.conftest import Finished, archive

from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.merging import choose
from tracer.merging.evaluator import Scores
from tracer.merging.run_group import run_group
from tracer.merging.wise import interpolate
from tracer.models.export import export
from tracer.models.student import load as load_model
from tracer.models.student import read_weights
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run


def merged(folder: Path, name: str) -> dict[str, torch.Tensor]:
    return read_weights(folder / "weights" / f"{name}.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("method", ["ft", "flyp"])
def test_wise_from_end_to_end(method: str, finished: Finished) -> None:
    run = finished(method)
    for alpha in ("0", "0.5", "1"):
        assert main(["merge", str(run), "--wise", alpha, "--device", "cpu"]) == 0
    group = run_group([Run.open(run)])
    assert same(merged(run, "wise-0"), group.start)
    assert same(merged(run, "wise-1"), merged(run, "result"))
    assert same(merged(run, "wise-0.5"), interpolate(group.start, merged(run, "result"), 0.5))
    assert ("head.weight" in group.start) == (method == "ft")
    assert main(["export", str(run), "--weights", "wise-0.5"]) == 0


def test_the_start_of_a_head_is_the_one_training_began_with(finished: Finished) -> None:
    """With a learning rate of nothing, the trained head still is its start."""
    run = finished("ft", lr=1e-30, decay=0.0)
    group = run_group([Run.open(run)])
    closeness.same(group.start["head.weight"], merged(run, "result")["head.weight"], length(group.student))


def test_a_sweep_chooses_and_tells(finished: Finished) -> None:
    run = finished("ft")
    assert main(["merge", str(run), "--wise", "0:1:0.5", "--name", "chosen", "--device", "cpu"]) == 0
    told = json.loads((run / "merges" / "chosen.json").read_text())
    assert [each["alpha"] for each in told["candidates"]] == [0.0, 0.5, 1.0]
    assert told["alpha"] == 0.5  # a handful of held-out images cannot choose
    assert "cannot tell these α apart" in told["notes"][0]
    chosen = next(each for each in told["candidates"] if each["alpha"] == 0.5)
    assert told["after"] == {key: value for key, value in chosen.items() if key != "alpha"}
    assert told["after"]["n"] == len(plan(Run.open(run).experiment).held_out)


def test_naming_emoji_is_measured_as_training_did(
    finished: Finished,
    minute: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A model that can name emoji is asked for them again, instead of for its agreement over ImageNet's names."""
    monkeypatch.setattr("tracer.evaluation.measured.can_name", lambda hits: True)
    export(load_model(minute, seed=5), tmp_path / "model")
    run = finished("flyp", model=str(tmp_path / "model"), pretrained="auto")
    assert main(["merge", str(run), "--wise", "0.5", "--device", "cpu"]) == 0
    scores = json.loads((run / "merges" / "wise-0.5.json").read_text())["after"]
    assert scores["retained_n"] == {"naming emoji": 240}
    assert "agreement" not in scores
    shown = capsys.readouterr().out
    assert "retained: naming emoji" in " ".join(shown.split())
    assert "ImageNet" not in shown


def test_a_budget_that_no_mixture_keeps_writes_nothing(
    finished: Finished, few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished("flyp")
    before = sorted(path.name for path in (run / "weights").iterdir())
    monkeypatch.setattr(Scores, "retention", lambda self, before: float(self.hits is before.hits))
    told = refused(capsys, str(run), "--wise", "0.5:1:0.25", "--keep", "0.97", "--retain", str(few))
    assert "no mixture of the sweep keeps 0.97" in told
    assert "(36 images)" in told
    assert sorted(path.name for path in (run / "weights").iterdir()) == before


def test_the_pretrained_model_has_one_row_and_what_is_not_measured_is_said(
    finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["merge", str(finished("flyp")), "--wise", "0:1:0.5", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if line.startswith("│")]
    assert len(rows) == 3
    assert "pretrained (α = 0)" in rows[0]
    assert "was not measured: --retain DATA" in shown


@pytest.mark.parametrize("keep", [0.0, 0.9, 1.0])
def test_a_budget_takes_the_strongest_within_it(keep: float, finished: Finished, few: Path) -> None:
    run = finished("flyp")
    asked = ["--wise", "0:1:0.25", "--keep", str(keep), "--retain", str(few), "--name", "kept"]
    assert main(["merge", str(run), *asked, "--device", "cpu"]) == 0
    told = json.loads((run / "merges" / "kept.json").read_text())
    (name,) = told["before"]["retained"]
    floor = keep * told["before"]["retained"][name]
    within = [each["alpha"] for each in told["candidates"] if each["retained"][name] >= floor - 1e-12]
    assert told["alpha"] == max(within)
    (note,) = told["notes"]
    assert f"the strongest that keeps {keep:g} of {few.name} (36 images): " in note.replace(
        f"{few.parent}/", ""
    )
    assert "with 95 % at least" in note
    assert ("sure to" in note) == (keep > 0), "36 images show little"


def test_data_to_retain_are_looked_at_before_anything_is_scored(
    finished: Finished, tmp_path: Path, few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished("flyp")
    images = np.load(few)["images"]
    np.savez(tmp_path / "unlabelled.npz", images=images, captions=np.array(["text"] * len(images)))
    told = refused(capsys, str(run), "--wise", "0.5", "--retain", str(tmp_path / "unlabelled.npz"))
    assert "no labels" in told
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "1.png").write_bytes(b"no image")
    told = refused(capsys, str(run), "--wise", "0.5", "--retain", str(tmp_path / "photos"))
    assert "1.png" in told


@pytest.mark.parametrize(
    "asked",
    [
        ["--soup", "uniform"],
        ["--soup", "greedy"],
        ["--stock", "tensor"],
        ["--stock", "row"],
    ],
)
def test_merges_of_several_runs(
    asked: list[str], finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "FEWEST", 1)  # a handful of images choose here, as if they were many
    runs = [str(finished("ft", {"smoothing": value})) for value in (0.0, 0.1)]
    assert main(["merge", *runs, *asked, "--device", "cpu"]) == 0
    name = "-".join(word.strip("-") for word in asked)
    told = json.loads((Path(runs[0]) / "merges" / f"{name}.json").read_text())
    assert told["runs"] == runs
    assert told["notes"]
    if "--stock" in asked:
        assert all(0 <= angle <= 90.001 for angle in told["angles"].values())


def test_a_handful_of_images_leaves_no_run_out_of_a_soup(
    finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(finished("ft", {"smoothing": value})) for value in (0.0, 0.1)]
    assert main(["merge", *runs, "--soup", "greedy", "--device", "cpu"]) == 0
    assert "held-out images are too few to leave runs out by" in capsys.readouterr().out
    told = json.loads((Path(runs[0]) / "merges" / "soup-uniform.json").read_text())
    assert told["notes"][0] == "the mean of 2 runs"


@pytest.mark.parametrize("method", ["ft", "flyp"])
@pytest.mark.parametrize(
    "asked", [["--tpgm", "rows", "--steps", "2"], ["--fisher", "0.5"], ["--paint", "0.5"]]
)
def test_merges_of_one_run(method: str, asked: list[str], finished: Finished) -> None:
    run = finished(method)
    assert main(["merge", str(run), *asked, "--name", "other", "--device", "cpu"]) == 0
    start, end, found = run_group([Run.open(run)]).start, merged(run, "result"), merged(run, "other")
    moved = [name for name in found if not torch.equal(found[name], start[name])]
    assert moved
    assert any(not torch.equal(found[name], end[name]) for name in found)


@pytest.mark.parametrize("asked", [["--dawin", "samples"], ["--dawin", "clustered"], ["--ensemble", "0.5"]])
def test_two_models_at_inference(
    asked: list[str], finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["merge", str(finished("ft")), *asked, "--device", "cpu"]) == 0
    assert "finetuned" in capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["merge", *arguments, "--device", "cpu"]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_other_classes_are_refused(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = archive(tmp_path / "other.npz", range(2, 5))
    one, two = finished("ft"), finished("ft", data=str(other))
    told = refused(capsys, str(one), str(two), "--soup", "uniform")
    assert str(one) in told
    assert str(two) in told
    assert "'0'" in told


def test_other_architectures_are_refused(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = finished("ft", model="tiny-28"), finished("ft", model="tiny-32")
    told = refused(capsys, str(one), str(two), "--stock", "tensor")
    assert all(word in told for word in (str(one), str(two), "tiny-28", "tiny-32", "architectures"))


def test_other_tokenizers_are_refused(
    finished: Finished, minute_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads(minute_model.read_text())
    config["text_cfg"]["context_length"] = 24
    (tmp_path / "tiny-short.json").write_text(json.dumps(config))
    one, two = finished("ft"), finished("ft", model=str(tmp_path / "tiny-short.json"))
    told = refused(capsys, str(one), str(two), "--soup", "uniform")
    assert all(word in told for word in (str(one), str(two), "tokenizers", "16 and 24"))


def test_another_start_is_refused(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = finished("ft"), finished("ft", seed=1)
    told = refused(capsys, str(one), str(two), "--soup", "uniform")
    assert all(word in told for word in (str(one), str(two), "seed 0", "seed 1"))


def test_a_head_and_none_are_refused(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = finished("ft"), finished("flyp")
    told = refused(capsys, str(one), str(two), "--soup", "uniform")
    assert all(word in told for word in (str(one), str(two), "head."))


@pytest.mark.parametrize("order", [1, -1])
def test_weights_of_other_names_are_refused(
    order: int, finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(finished("flyp", adapter=adapter)) for adapter in ("lora:rank=2", "prompts:image=2,text=2")]
    told = refused(capsys, *runs[::order], "--soup", "uniform")
    assert f"{runs[1]} has clip.transformer.gate and {runs[0]} has not: they cannot be merged" in told


def test_a_head_over_raw_features_is_refused(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished("lp")
    told = refused(capsys, str(run), "--wise", "0.5")
    assert str(run) in told
    assert "--unit" in told


def test_a_greedy_soup_without_held_out_data_is_refused(
    finished: Finished, few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run held out a part of its data, the other something else: neither may judge the other."""
    one, two = finished("ft"), finished("ft", held_out=str(few))
    told = refused(capsys, str(one), str(two), "--soup", "greedy")
    assert all(word in told for word in (str(one), str(two), "--held-out"))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([], "choose one way to merge, for example --wise 0.5"),
        (["--wise", "0.5", "--soup", "greedy"], "wise and soup"),
        (["--wise", "1.2"], "--extrapolate"),
        (["--fisher", "1.2", "--extrapolate"], "weighted mean"),
        (["--soup", "uniform", "--keep", "0.9"], "--keep"),
        (["--wise", "0:1:0.5", "--keep", "2"], "between 0 and 1"),
        (["--stock", "tensor"], "two or more"),
        (["--soup", "thick"], "a soup is uniform or greedy, not 'thick'"),
        (["--wise", "0.5", "--weights", "teacher"], "no teacher weights"),
    ],
)
def test_what_makes_no_sense_is_refused(
    asked: list[str], told: str, finished: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refused(capsys, str(finished("ft")), *asked)


@pytest.mark.parametrize(
    ("way", "how"),
    [(["--wise", "0.5"], "wise"), (["--tpgm", "rows"], "tpgm"), (["--ensemble", "0.5"], "an ensemble")],
)
def test_several_runs_for_one_are_refused_before_they_are_loaded(
    way: list[str], how: str, finished: Finished, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    folders = str(finished("ft")), str(finished("flyp"))
    monkeypatch.setattr("tracer.api.merge.run_group", None)
    assert f"{how} merges one run with its pretrained model, and 2 runs" in refused(capsys, *folders, *way)


def test_other_data_than_the_run_held_out_are_not_chosen_by(few: Path, tmp_path: Path) -> None:
    data = tmp_path / "own.npz"
    data.write_bytes(few.read_bytes())
    asked = Experiment(data=str(data), model="tiny-28", pretrained="none", steps=2, batch=8, precision="fp32")
    run = Run.create(plan(asked), tmp_path / "run")
    run.keep("result", run.student("pretrained").state_dict())
    assert run_group([run]).ends
    stored = dict(np.load(data))
    np.savez(data, **{**stored, "images": 255 - stored["images"]})
    with pytest.raises(UserError, match="with other training images and held-out images"):
        run_group([run])
