"""Recall in both directions, with several captions to an image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import pair_ranks, retrieval


def pairs(images: int, captions: int, noise: float, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Images, `captions` texts near each of them in shuffled order, and whose they are."""
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(images, 8, generator=generator)
    owners = torch.arange(images).repeat(captions)[torch.randperm(images * captions, generator=generator)]
    return image, image[owners] + noise * torch.randn(len(owners), 8, generator=generator), owners


def recall_at(image: Tensor, text: Tensor, owners: Tensor, k: int = 1) -> tuple[float, float]:
    """The share of images with a caption of their own among the k nearest, and of captions with their image."""
    images, texts = pair_ranks(image, text, owners, torch.arange(len(owners)))
    return float((images < k).double().mean()), float((texts < k).double().mean())


def twin(image: np.ndarray, text: np.ndarray, owners: np.ndarray, k: int) -> tuple[float, float]:
    image = image / np.linalg.norm(image, axis=1, keepdims=True)
    text = text / np.linalg.norm(text, axis=1, keepdims=True)
    similarity = image @ text.T
    found_text = [i in owners[np.argsort(-similarity[i])[:k]] for i in range(len(image))]
    found_image = [owners[j] in np.argsort(-similarity[:, j])[:k] for j in range(len(text))]
    return float(np.mean(found_text)), float(np.mean(found_image))


@pytest.mark.parametrize("k", [1, 5, 10])
@pytest.mark.parametrize("captions", [1, 5])
def test_numpy_twin(k: int, captions: int) -> None:
    image, text, owners = pairs(40, captions, noise=1.5)
    assert recall_at(image, text, owners, k) == twin(image.numpy(), text.numpy(), owners.numpy(), k)


def test_by_hand() -> None:
    image = torch.eye(3)
    # caption 1 describes image 0 in words that fit image 1 best, caption 3 describes image 2 like image 0
    text = torch.tensor([[0.9, 0.1, 0], [0.1, 0.9, 0], [0, 0.8, 0.1], [0.8, 0, 0.3]])
    owners = torch.tensor([0, 0, 1, 2])
    assert recall_at(image, text, owners, 1) == (2 / 3, 0.5)
    assert recall_at(image, text, owners, 2) == (1.0, 1.0)


def test_any_caption_will_do() -> None:
    image, text, owners = pairs(30, 4, noise=0.0)
    spoiled = text.clone()
    first = torch.stack([(owners == i).nonzero()[0, 0] for i in range(30)])
    spoiled[first] = -text[first]  # one caption of each image is hopeless
    assert recall_at(image, spoiled, owners, 1) == (1.0, 0.75)


def test_collapsed_features_score_at_chance() -> None:
    owners = torch.arange(20)
    assert recall_at(torch.ones(20, 4), torch.ones(20, 4), owners, 1) == (0.05, 0.05)


def test_length_of_features_does_not_matter() -> None:
    image, text, owners = pairs(25, 2, noise=1.0)
    scale = torch.rand(50, 1, generator=torch.Generator().manual_seed(1)) + 0.1
    assert recall_at(image * 7, text * scale, owners, 1) == recall_at(image, text, owners, 1)


def test_parts_make_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    image, text, owners = pairs(25, 2, noise=1.0)
    whole = recall_at(image, text, owners, 1)
    monkeypatch.setattr(retrieval, "SIMILARITIES", 120)
    assert recall_at(image, text, owners, 1) == whole


def test_refuses_features_that_are_not_finite() -> None:
    with pytest.raises(UserError, match="NaN"):
        recall_at(torch.eye(3) * torch.nan, torch.eye(3), torch.arange(3))
