from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.core.errors import UserError
from tracer.data.digits import digits
from tracer.data.examples import Examples, Pixels
from tracer.data.split import align_labels, hold_out


def make_examples(labels: list[int], classes: int = 5) -> Examples:
    return Examples(
        name="made",
        images=Pixels(np.arange(len(labels) * 3, dtype=np.uint8).reshape(-1, 1, 1, 3)),
        ids=[f"image {i}" for i in range(len(labels))],
        labels=np.array(labels, np.int64),
        captions=[()] * len(labels),
        classes=tuple("abcde"[:classes]),
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.floats(0.001, 0.99), st.integers(0, 5))
def test_every_class_gives_its_share_and_keeps_the_rest(labels, share, seed):
    examples = make_examples(labels)
    train, held = hold_out(examples, share, seed)
    assert sorted([*train.ids, *held.ids]) == sorted(examples.ids)
    for label in set(labels):
        count, held_out = labels.count(label), int((held.labels == label).sum())
        assert held_out == (0 if count == 1 else min(max(1, round(share * count)), count - 1))


def test_two_per_cent_of_the_digits():
    train, held = hold_out(digits())
    assert np.bincount(held.labels).tolist() == [20] * 10
    assert len(train) == 9_800


def test_the_choice_depends_on_seed_and_id_only():
    examples = make_examples([0, 1] * 50)
    shuffled = examples.take(np.random.default_rng(0).permutation(100))
    chosen = set(hold_out(examples, 0.1)[1].ids)
    assert set(hold_out(shuffled, 0.1)[1].ids) == chosen
    assert hold_out(examples, 0.1)[1].fingerprint == hold_out(examples, 0.1)[1].fingerprint
    assert set(hold_out(examples, 0.1, seed=1)[1].ids) != chosen


def test_pixels_labels_and_ids_stay_together():
    examples = make_examples([0, 1, 2] * 10)
    for part in hold_out(examples, 0.3):
        for i, name in enumerate(part.ids):
            original = examples.ids.index(name)
            assert part.labels[i] == examples.labels[original]
            assert np.asarray(part.images[i])[0, 0, 0] == 3 * original


def test_without_labels_the_choice_is_at_random():
    captions = replace(make_examples([-1] * 200, 0), captions=[("x",)] * 200)
    train, held = hold_out(captions)
    assert (len(train), len(held)) == (196, 4)


def test_nothing_is_held_out_when_nothing_is_asked():
    train, held = hold_out(make_examples([0, 1, 0, 1]), 0.0)
    assert (len(train), len(held)) == (4, 0)


@pytest.mark.parametrize("share", [-0.1, 1.0, 2.0])
def test_impossible_shares_are_refused(share):
    with pytest.raises(UserError, match=f"held-out share {share}"):
        hold_out(make_examples([0, 1]), share)


def test_a_held_out_set_of_ones_own_counts_in_the_training_classes():
    held = replace(make_examples([0, 1, -1], 2), classes=("dog", "cat"))
    joined = align_labels(held, ("bat", "cat", "dog"))
    assert joined.labels.tolist() == [2, 1, -1]
    assert joined.classes == ("bat", "cat", "dog")
    with pytest.raises(UserError, match="unknown class in made 'dog'"):
        align_labels(held, ("bat", "cat"))
