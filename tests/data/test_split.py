from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.core.errors import UserError
from tracer.data.classes import normal_name
from tracer.data.embedded.digits import digits
from tracer.data.examples import Examples, Pixels
from tracer.data.split import align_labels, default_share, hold_out


def make_examples(labels: list[int], classes: int = 5) -> Examples:
    return Examples(
        name="made",
        images=Pixels(np.arange(len(labels) * 3, dtype=np.uint8).reshape(-1, 1, 1, 3)),
        ids=[f"image {i}" for i in range(len(labels))],
        labels=np.array(labels, np.int64),
        captions=[()] * len(labels),
        classes=tuple(f"class {i}" for i in range(classes)),
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


def test_a_tenth_of_the_digits():
    train, held = hold_out(digits())
    assert np.bincount(held.labels).tolist() == [100] * 10
    assert len(train) == 9_000


@pytest.mark.parametrize(
    ("count", "held_out"),
    [(10, 2), (500, 100), (5_000, 500), (50_000, 5_000), (100_000, 10_000), (1_281_167, 10_000)],
)
def test_few_images_hold_out_more(count, held_out):
    assert round(default_share(count) * count) == held_out


@given(st.integers(1, 10**8))
def test_the_share_falls_and_the_number_grows(count):
    share, next_share = default_share(count), default_share(count + 1)
    assert 0 < next_share <= share <= 0.2
    assert share * count <= 10_000 + 1e-6
    assert next_share * (count + 1) >= share * count - 1


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(2, 60), min_size=1, max_size=60), st.data())
def test_never_more_than_the_limit_by_rounding(members, data):
    limit = data.draw(st.integers(len(members), sum(members)))
    share = min(limit / sum(members), 0.99)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracer.data.split.MOST", limit)
        _, held = hold_out(make_examples([i for i, n in enumerate(members) for _ in range(n)], 60), share)
    least = sum(1 for n in members if share * n < 1)  # at least one of each class all the same
    assert len(held) <= limit + least


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
    assert (len(train), len(held)) == (160, 40)


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


def test_spelling_does_not_make_another_class():
    held = replace(make_examples([0, 1, 2], 3), classes=("Hot_Dog", "CAT", "owl"))
    joined = align_labels(held, ("owl", "cat", "hot dog"))
    assert joined.labels.tolist() == [2, 1, 0]
    assert joined.warnings == ("made: the class 'Hot_Dog' is taken for 'hot dog', and 1 more likewise",)
    assert align_labels(joined, joined.classes) is joined


def test_two_classes_never_become_one():
    held = replace(make_examples([0, 1], 2), classes=("Cat", "cat"))
    with pytest.raises(UserError, match="'Cat' and 'cat' are both the class 'cat'"):
        align_labels(held, ("cat", "dog"))
    assert align_labels(held, ("cat", "Cat")).labels.tolist() == [1, 0]


def test_classes_of_one_name_keep_their_labels():
    names = ("sunglasses", "cat", "sunglasses")  # as in ImageNet
    held = replace(make_examples([0, 1, 2], 3), classes=names)
    assert align_labels(held, names).labels.tolist() == [0, 1, 2]
    with pytest.raises(UserError, match="unknown class in made 'sunglasses'"):
        align_labels(held, (*names, "dog"))


NAMES = st.text(st.sampled_from("aAbB _-.'1é"), min_size=1, max_size=5).filter(lambda name: name.strip())


@settings(deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=6, unique=True), st.lists(NAMES, max_size=6, unique=True))
def test_alignment_keeps_every_class_apart_or_refuses(own, trained):
    held = replace(make_examples(list(range(len(own))), len(own)), classes=tuple(own))
    try:
        aligned = align_labels(held, trained)
    except UserError:
        return
    assert len(set(aligned.labels.tolist())) == len(own)
    for name, label in zip(own, aligned.labels, strict=True):
        assert normal_name(name) == normal_name(trained[label])
        assert name not in trained or trained[label] == name
