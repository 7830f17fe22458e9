"""A run, its evaluation and its export read pictures alike; other programs do with the lines that are shown."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

import tracer
from tracer.cli.app import main
from tracer.data.features import embed_images
from tracer.data.sources import load as load_data
from tracer.data.transforms import Transform
from tracer.evaluation import test_sets
from tracer.evaluation.target import targets
from tracer.parallel import World
from tracer.report.images import own_images
from tracer.runs.run import Run
from tracer.storage.images import read

DOCS = Path(tracer.__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grey images of twelve bits in files of sixteen; the largest values are in one class of the training split."""
    folder, rng = tmp_path_factory.mktemp("deep") / "photos", np.random.default_rng(0)
    for split, highest in (("train", 4000), ("val", 900), ("test", 1000)):
        for label, share in (("dark", 0.25), ("bright", 1)):
            (folder / split / label).mkdir(parents=True)
            for i in range(4):
                values = rng.integers(0, max(2, int(share * highest)), (9, 9)).astype(np.uint16)
                values[0, 0] = share * highest
                Image.fromarray(values).save(folder / split / label / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def run(photos: Path) -> Run:
    return tracer.finetune(
        photos,
        model="tiny-28",
        method=tracer.methods.ft(),
        pretrained="none",
        out=photos.parent / "run",
        templates="name",
        batch=4,
        steps=2,
        device="cpu",
    )


def test_the_white_of_training_is_that_of_all_that_follows(
    run: Run, photos: Path, tmp_path: Path, capsys
) -> None:
    assert run.experiment.white_level == 4095
    held_out, train = own_images(run)
    assert held_out.white_level == train.white_level == 4095, "a report, which scans nothing"
    loaded = tracer.load(run)
    folder = tracer.export(run, tmp_path / "model")
    test = Image.open(photos / "test" / "bright" / "0.png")
    expected = loaded.student.preprocess(
        Image.fromarray(np.rint(np.asarray(test) * (255 / 4095)).astype(np.uint8))
    )
    for model in (loaded, tracer.load(folder)):
        assert model.student.white_level == 4095
        assert torch.equal(model.student.preprocess(test), expected)
    assert "more than eight bits, 4095 is white" in (folder / "README.md").read_text()
    table = tmp_path / "test.csv"
    rows = [f"{path},{path.parent.name}\n" for path in sorted((photos / "test").rglob("*.png"))]
    table.write_text("".join(["filepath,label\n", *rows]))
    (tested,) = test_sets.TestSets(data=(str(table),)).suite_for(targets(str(run.folder), "auto", None)[0])
    assert tested.load().white_level == 4095, "data of another kind too"
    alone = load_data(table)
    (embedded,) = embed_images(loaded.student, alone.take(np.array([0])), World("cpu", "fp32"))
    with torch.no_grad():
        assert torch.equal(
            embedded, loaded.student.embed_image(loaded.student.preprocess(Image.open(alone.ids[0])))
        )
    for model in (run.folder, folder):
        suite = test_sets.TestSets(data=(str(photos),)).suite_for(targets(str(model), "auto", None)[0])
        assert [shift.load().white_level for shift in suite] == [4095]
        with pytest.warns(UserWarning, match="read as the run read its data: --white-level 4095"):
            tracer.evaluate(model, data=photos)
    plain = test_sets.TestSets(data=(str(photos),)).suite_for(targets("tiny-28", "none", None)[0])
    assert [shift.load().white_level for shift in plain] == [1023], "of these images alone"
    assert main(["check", str(photos)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "found white level: 4095, in 8 images of more than eight bits with values up to 4000" in said
    assert "almost black" not in said


def shown_lines() -> dict[str, str]:
    """The lines for other programs: those of the page, and those of the card."""
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(from PIL import Image, ImageOps.*?)```", page, flags=re.DOTALL)
    card = (Path(tracer.__file__).parent / "report" / "usage.md.j2").read_text(encoding="utf-8")
    (seen,) = re.findall(r"def seen.*?\n\n", card, flags=re.DOTALL)
    return {"page": block, "card": f'{seen}image = seen("photo.jpg")'}


@pytest.mark.parametrize("where", ["page", "card"])
def test_the_lines_for_other_programs_show_the_same_picture(where: str, tmp_path: Path, monkeypatch) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 9, 4), dtype=np.uint8)
    tags, file = Image.Exif(), BytesIO()
    tags[0x0112] = 6
    Image.fromarray(pixels).save(file, "PNG", exif=tags)
    (tmp_path / "photo.jpg").write_bytes(file.getvalue())
    monkeypatch.chdir(tmp_path)
    with Image.open("photo.jpg") as opened:
        names = {"Image": Image, "ImageOps": ImageOps, "image": opened}
        exec(shown_lines()[where], names)
        transform = Transform(tracer.load("tiny-28", "none").student.preprocess_cfg)
        assert torch.equal(transform(names["image"]), transform(opened))
    assert np.array_equal(np.asarray(names["image"]), np.asarray(read(file.getvalue()).image))
