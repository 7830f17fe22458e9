"""A batch depends on seed and step only, not on the order of access or the number of processes."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset

from tracer.core.batch import Batch
from tracer.core.errors import UserError
from tracer.data.examples import Examples, Pixels
from tracer.data.loader import Batches, WorkerLost, loader, worker_errors
from tracer.data.transforms import Transform
from tracer.models.student import Student

SIZE = 28
TEMPLATES = ("a photo of a {}.", "a drawing of a {}, on paper", "{}")


def examples(count: int = 23, **changed: Any) -> Examples:
    """All pixels of image i have the value i, so that a batch shows which images it holds."""
    grey = np.arange(count, dtype=np.uint8)[:, None, None, None]
    fields = {
        "images": Pixels(np.broadcast_to(grey, (count, SIZE, SIZE, 3)).copy()),
        "ids": [f"{i}.png" for i in range(count)],
        "labels": np.arange(count) % 3,
        "captions": [()] * count,
        "classes": ("cat", "dog", "emu"),
    }
    return Examples("squares", **(fields | changed))


def textured() -> Examples:
    """Random pixels, which crops and flips change."""
    return examples(images=Pixels(np.random.default_rng(0).integers(0, 256, (23, 31, 29, 3), dtype=np.uint8)))


@pytest.fixture
def make(shared_student: Student):
    def build(data: Examples | None = None, augment: Any = "none", **given: Any) -> Batches:
        chosen = {
            "batch": 6,
            "seed": 0,
            "tokeniser": shared_student.tokeniser,
            "templates": TEMPLATES,
        } | given
        return Batches(
            data or examples(), transform=Transform(shared_student.preprocess_cfg, augment), **chosen
        )

    return build


def shown(batch: Batch) -> list[int]:
    return batch.image[:, 0, 0, 0].tolist()


def pair_tokens(batch: Batch) -> list[list[int]]:
    """Each image's tokens, without the padding that depends on its neighbours."""
    assert batch.text is not None
    assert batch.caption is not None
    return [[token for token in row if token] for row in batch.text[batch.caption].tolist()]


def equal(a: Batch, b: Batch) -> bool:
    return all(
        torch.equal(x, y) if isinstance(x, Tensor) and isinstance(y, Tensor) else x is y
        for x, y in zip(a, b, strict=True)
    )


def test_a_batch_is_a_function_of_seed_and_step(make) -> None:
    """In any order of access, with any global random state, from two independent loaders."""
    first, second = (make(textured(), augment="crop+flip") for _ in range(2))
    expected = [first[step] for step in range(8)]
    for step in (7, 3, 0, 5):
        random.seed(step)
        np.random.seed(step)
        torch.manual_seed(step)
        assert equal(second[step], expected[step])
    other = make(textured(), augment="crop+flip", seed=1)
    assert not equal(other[0], expected[0])


def test_making_batches_draws_nothing_from_the_global_generators(make) -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    expected = torch.rand(1), np.random.rand(), random.random()
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    list(loader(make(textured(), augment="crop+flip"), range(2)))
    assert (torch.rand(1), np.random.rand(), random.random()) == expected


@pytest.mark.parametrize(("count", "batch"), [(24, 6), (23, 6), (7, 7), (5, 1)])
def test_an_epoch_visits_every_example_once(make, count: int, batch: int) -> None:
    """All examples if the batch size divides their number; else all but a remainder that differs between epochs."""
    batches = make(examples(count), batch=batch)
    epochs = []
    for epoch in range(3):
        steps = range(epoch * batches.per_epoch, (epoch + 1) * batches.per_epoch)
        epochs.append([index for step in steps for index in batches.indices(step).tolist()])
    for visited in epochs:
        assert len(visited) == len(set(visited)) == count // batch * batch
        assert set(visited) <= set(range(count))
    if count > 7:
        assert epochs[0] != epochs[1] != epochs[2]


def test_a_batch_holds_what_it_says(make) -> None:
    batches = make()
    for step in range(5):
        batch = batches[step]
        assert shown(batch) == batches.indices(step).tolist()
        assert batch.label is not None
        assert batch.label.tolist() == [i % 3 for i in shown(batch)]
        texts = batches.texts(batches.indices(step), step)
        assert pair_tokens(batch) == pair_tokens(
            Batch(batch.image, batches.tokeniser(texts), caption=torch.arange(6))
        )
        for index, text in zip(shown(batch), texts, strict=True):
            assert text in {
                template.replace("{}", ("cat", "dog", "emu")[index % 3]) for template in TEMPLATES
            }


def test_each_distinct_caption_comes_once(make) -> None:
    batch = make(templates=("{}",))[0]
    assert batch.text is not None
    assert len(batch.text) == len(set(map(tuple, batch.text.tolist()))) <= 3


def test_templates_are_drawn_anew_and_evenly(make) -> None:
    """600 draws over three templates: each about 200 (within 4 standard deviations of 11.5)."""
    batches = make(batch=20, templates=TEMPLATES)
    drawn = Counter(
        text.replace(name, "{}") for step in range(30) for text, name in named_texts(batches, step)
    )
    assert set(drawn) == set(TEMPLATES)
    assert all(abs(count - 200) < 46 for count in drawn.values())
    image = np.array([4])
    assert len({batches.texts(image, step)[0] for step in range(40)}) == 3


def named_texts(batches: Batches, step: int) -> list[tuple[str, str]]:
    indices = batches.indices(step)
    names = [batches.examples.classes[batches.examples.labels[i]] for i in indices]
    return list(zip(batches.texts(indices, step), names, strict=True))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("augment", ["none", "crop+flip"])
def test_the_shares_of_the_ranks_make_the_batch_of_one(make, ranks: int, augment: str) -> None:
    whole = make(textured(), augment=augment)
    parts = [make(textured(), augment=augment, rank=rank, ranks=ranks) for rank in range(ranks)]
    for step in range(6):
        shares = [part[step] for part in parts]
        assert {len(share.image) for share in shares} == {6 // ranks}
        assert torch.equal(torch.cat([share.image for share in shares]), whole[step].image)
        assert torch.equal(torch.cat([share.label for share in shares]), whole[step].label)  # pyright: ignore
        assert [row for share in shares for row in pair_tokens(share)] == pair_tokens(whole[step])


@pytest.mark.parametrize("steps", [range(6), range(3, 7)])
def test_workers_change_nothing_but_time(make, steps: range) -> None:
    batches = make(textured(), augment="crop+flip")
    single = list(loader(batches, steps))
    parallel = list(loader(batches, steps, workers=2))
    assert len(single) == len(parallel) == len(steps)
    assert all(
        equal(a, b) and equal(a, batches[step]) for a, b, step in zip(single, parallel, steps, strict=True)
    )


def test_own_captions_come_before_class_names(make) -> None:
    own = [("first of 0", "second of 0"), (), *[("caption",)] * 21]
    batches = make(examples(captions=own))
    zero = {batches.texts(np.array([0]), step)[0] for step in range(30)}
    assert zero == set(own[0])
    one = {batches.texts(np.array([1]), step)[0] for step in range(60)}
    assert one == {template.replace("{}", "dog") for template in TEMPLATES}


def test_without_classes_equal_captions_share_a_label(make) -> None:
    captions = [("a cat",), ("a dog",), ("a cat",), *[(f"{i}",) for i in range(20)]]
    data = examples(captions=captions, classes=(), labels=np.full(23, -1))
    labels = make(data).labels
    assert labels[0] == labels[2] != labels[1]
    assert len(set(labels.tolist())) == 22


def test_an_image_without_any_text_is_refused(make) -> None:
    """Label −1 would silently index the last class."""
    data = examples(labels=np.array([*range(3)] * 7 + [0, -1]))
    with pytest.raises(UserError, match=r"1 have neither caption nor class, 22\.png"):
        make(data)
    assert make(data, tokeniser=None)[0].text is None  # no text is needed, so none is missing


@pytest.mark.parametrize(
    ("options", "message"),
    [({"batch": 24}, "24 cannot be drawn from 23"), ({"batch": 6, "ranks": 4}, "does not divide among 4")],
)
def test_batches_that_cannot_be_made(make, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_augmentation_changes_from_epoch_to_epoch(make) -> None:
    batches = make(textured(), augment="crop+flip", batch=23)
    one, two = (batches[epoch].image[np.argsort(batches.indices(epoch))] for epoch in (0, 1))
    changed = (one != two).flatten(1).any(dim=1)
    assert changed.float().mean() > 0.8


def test_each_image_has_its_own_augmentation(make) -> None:
    """A batch of 23 copies of one image: with a shared random state, all crops would be equal."""
    one = np.random.default_rng(0).integers(0, 256, (1, 31, 29, 3), dtype=np.uint8)
    same = examples(images=Pixels(np.repeat(one, 23, axis=0)))
    images = make(same, augment="crop+flip", batch=23)[0].image.flatten(1)
    assert len(images.unique(dim=0)) > 10


def test_random_streams_are_independent(make) -> None:
    """Pairs of seed and step with the same concatenated digits give different streams."""
    texts = [make(seed=seed).texts(np.arange(23), step) for seed, step in [(1, 12), (11, 2), (112, 0)]]
    assert texts[0] != texts[1] != texts[2] != texts[0]


def test_a_script_that_ends_with_workers_alive_does_not_hang() -> None:
    """Workers ignore SIGTERM from others; their parent must still be able to end them when it exits."""
    script = """
import sys
from torch.utils.data import Dataset
from tracer.data.loader import loader
class Numbers(Dataset):
    def __getitem__(self, step): return step
batches = loader(Numbers(), range(100), workers=2)
sys.kept = batches, next(batches)  # as an interactive session keeps the last traceback, and all that it refers to
raise SystemExit(7)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    assert done.returncode == 7


@pytest.mark.parametrize("error", [ConnectionResetError("reset by peer"), EOFError("closed")])
def test_a_broken_pipe_to_a_worker_is_its_death(error: Exception) -> None:
    with pytest.raises(WorkerLost, match="a process that reads images has ended"), worker_errors(type(error)):
        raise error
    with pytest.raises(type(error)), worker_errors():
        raise error


class Gone(Dataset[int]):
    """Images that can no longer be read."""

    def __getitem__(self, step: int) -> int:
        raise UserError("the image a.png cannot be read: there is no such file")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_that_is_gone_is_one_sentence_in_a_worker_too(workers: int) -> None:
    """torch puts the worker's traceback into the message."""
    with pytest.raises(UserError) as failure:
        next(loader(Gone(), range(1), workers=workers))
    assert str(failure.value) == "the image a.png cannot be read: there is no such file"
