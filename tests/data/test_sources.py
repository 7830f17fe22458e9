"""The same thirty images give the same data in every format."""

from __future__ import annotations

import io
import json
import tarfile

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from kept import predictions
from PIL import Image

from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.data.sources import load

CLASSES = ("blue jay", "cardinal", "heron")
KEYS = tuple(name.replace(" ", "_") for name in CLASSES)


@pytest.fixture(scope="module")
def thirty() -> list[tuple[str, int, str, np.ndarray]]:
    """Path, label, caption and pixels, in the order of the paths."""
    rng = np.random.default_rng(0)
    rows = []
    for label, key in enumerate(KEYS):
        for i in range(10):
            pixels = rng.integers(0, 256, (8 + i, 12, 3), dtype=np.uint8)
            rows.append((f"{key}/{i}.png", label, f"a {key}, number {i}; «good»", pixels))
    return rows


@pytest.fixture(scope="module")
def root(tmp_path_factory, thirty):
    root = tmp_path_factory.mktemp("birds")
    for path, _, _, pixels in thirty:
        (root / "images" / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(root / "images" / path)
    return root


def records(thirty):
    return [
        {"filepath": f"images/{path}", "title": caption, "label": KEYS[label]}
        for path, label, caption, _ in thirty
    ]


def separated(root, thirty, name, mark, encoding="utf-8"):
    rows = [list(records(thirty)[0]), *(list(record.values()) for record in records(thirty))]
    text = "\r\n".join(mark.join(f'"{cell}"' for cell in row) for row in rows)
    (root / name).write_bytes(text.encode(encoding))
    return root / name


def jsonl(root, thirty):
    path = root / "birds.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records(thirty)), encoding="utf-8")
    return path


def parquet(root, thirty):
    pq.write_table(pa.Table.from_pylist(records(thirty)), root / "birds.parquet")
    return root / "birds.parquet"


def shards(root, thirty):
    (root / "shards").mkdir(exist_ok=True)
    for shard in range(3):
        with tarfile.open(root / "shards" / f"birds-{shard:03d}.tar", "w") as tar:
            for i, (path, label, caption, _) in enumerate(thirty[10 * shard : 10 * shard + 10]):
                image = (root / "images" / path).read_bytes()
                for ending, content in (
                    ("cls", KEYS[label].encode()),
                    ("png", image),
                    ("txt", caption.encode()),
                ):
                    member = tarfile.TarInfo(f"{i:06d}.{ending}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return f"{root}/shards/birds-{{000..002}}.tar"


def remote_shards(root, thirty):
    shards(root, thirty)
    memory = fsspec.filesystem("memory")
    for path in sorted((root / "shards").glob("*.tar")):
        memory.pipe(f"/birds/{path.name}", path.read_bytes())
    return "memory://birds/birds-{000..002}.tar"


SOURCES = {
    "folder": lambda root, thirty: root / "images",
    "csv": lambda root, thirty: separated(root, thirty, "birds.csv", ","),
    "csv with semicolons and a mark": lambda root, thirty: separated(root, thirty, "b.csv", ";", "utf-8-sig"),
    "csv in utf-16": lambda root, thirty: separated(root, thirty, "wide.csv", ",", "utf-16"),
    "csv in cp1252": lambda root, thirty: separated(root, thirty, "western.csv", ",", "cp1252"),
    "tsv": lambda root, thirty: separated(root, thirty, "birds.tsv", "\t"),
    "jsonl": jsonl,
    "parquet": parquet,
    "shards": shards,
    "remote shards": remote_shards,
    "folder of shards": lambda root, thirty: shards(root, thirty).rpartition("/")[0],
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_format_gives_the_same_pixels_labels_classes_and_captions(root, thirty, kind):
    examples = load(SOURCES[kind](root, thirty))
    assert examples.classes == CLASSES
    assert examples.labels.tolist() == [label for _, label, _, _ in thirty]
    for i, (_, _, _, pixels) in enumerate(thirty):
        assert (np.asarray(examples.images[i]) == pixels).all()
    if kind != "folder":
        assert list(examples.captions) == [(caption,) for _, _, caption, _ in thirty]
        assert examples.detected


@pytest.mark.parametrize("kind", ["csv", "parquet", "shards"])
def test_every_format_gives_the_same_predictions(root, thirty, kind, tmp_path):
    command = ["eval", "tiny-28", "--pretrained", "none", "--templates", "name", "--device", "cpu", "--data"]
    both = []
    for each in ("folder", kind):
        assert main([*command, str(SOURCES[each](root, thirty)), "--out", str(tmp_path / each)]) == 0
        both.append(predictions(tmp_path / each))
    first, second = both
    assert torch.equal(first.logits, second.logits)
    assert first.label.tolist() == second.label.tolist() == [label for _, label, _, _ in thirty]
    assert first.logits.std(0).min() > 0, "the images differ, and so do their scores"


def test_arrays_give_the_same(root, thirty, tmp_path):
    pixels = np.stack([pixels[:8] for *_, pixels in thirty])
    labels = np.array([label for _, label, _, _ in thirty])
    np.savez(tmp_path / "birds.npz", images=pixels, labels=labels, classes=np.array(CLASSES))
    examples = load(tmp_path / "birds.npz")
    assert examples.classes == CLASSES
    assert (examples.labels == labels).all()
    assert all((np.asarray(examples.images[i]) == pixels[i]).all() for i in range(30))


def test_paths_labels_and_captions_can_be_chosen(root, thirty):
    path = separated(root, thirty, "birds.csv", ",")
    assert not load(path, label="none").labelled
    assert not load(path, caption="none").captioned
    assert load(path, label="title").classes[0] == "a blue jay, number 0; «good»"
    with pytest.raises(UserError, match="unknown column 'titel': did you mean title"):
        load(path, caption="titel")
