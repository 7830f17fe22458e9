"""The archive is the one that was built, splits share no emoji, captions hold what their regime allows."""

from __future__ import annotations

import hashlib
import io
import json
from itertools import combinations
from zipfile import ZipFile

import numpy as np
import pytest

from tracer.core.errors import UserError
from tracer.data.embedded.emoji import ARCHIVE, KIND_OF, KINDS, archive
from tracer.data.embedded.emojishift import (
    COLOURS,
    FOLDS,
    HELD_OUT,
    MONOCHROME,
    UNSEEN,
    WRONG,
    captions,
    clean,
    emoji_kinds,
    emoji_names,
    family,
    folds,
    forbidden,
    held_out,
    leaks,
    root,
    styles,
)
from tracer.data.sources import load
from tracer.evaluation.suites import SUITES
from tracer.evaluation.suites.emojishift import emojishift, suite_from_spec

SPLITS = {
    "val": "2c0b184ccead",
    "test": "af8b0efac05e",
    "names": "172b62ac32b4",
    "retention": "50cb7f528651",
}
DIGEST = "825e564a6a5ef35852609fa19ee71a2562b8a9e532c957988ed05b84a486679d"


def test_the_archive_is_the_one_that_was_built() -> None:
    content = ARCHIVE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == DIGEST
    assert len(content) < 10_000_000


def test_every_picture_has_its_place_and_none_is_there_twice() -> None:
    emoji_archive = archive()
    assert len(emoji_archive.emoji) == 1379
    assert len(emoji_archive.styles) == 12
    assert sum(len(style.emoji) for style in emoji_archive.styles) == 14_259
    for style in emoji_archive.styles:
        assert style.images.shape == (len(style.emoji), 32, 32, 3)
        assert len(set(style.emoji.tolist())) == len(style.emoji)
    pictures = {picture.tobytes() for style in emoji_archive.styles for picture in style.images}
    assert len(pictures) == 14_259


def test_every_style_says_whose_it_is() -> None:
    with ZipFile(io.BytesIO(ARCHIVE.read_bytes())) as file:
        styles = json.loads(file.read("index.json"))["styles"]
    for style in styles:
        assert style["licence"] in ("Apache-2.0", "CC-BY-4.0", "CC-BY-SA-4.0", "MIT")
        assert style["author"]
        assert style["url"].startswith("https://")


def test_names_are_distinct() -> None:
    assert len({each.name for each in archive().emoji}) == len(archive().emoji)


def test_every_subgroup_is_in_one_kind_or_left_over() -> None:
    subgroups = {each.subgroup for each in archive().emoji}
    assert subgroups == KIND_OF.keys() | {"keycap", "other-object", "other-symbol"}
    counts = np.bincount([KINDS.index(KIND_OF[e.subgroup]) for e in archive().emoji if e.subgroup in KIND_OF])
    assert counts.min() >= 9


def test_pretraining_sees_no_pair_that_is_tested() -> None:
    pretrained = set(emoji_names("strong").ids)
    assert pretrained.isdisjoint(emoji_names("strong", "test").ids)
    for style in styles():
        for fold in range(FOLDS):
            assert pretrained.isdisjoint(emoji_kinds(style, fold, "test").ids)


def test_pretraining_sees_no_drawing_of_a_held_out_pair_in_a_sister_style() -> None:
    families = {
        (each.partition("/")[2], family(each.partition("/")[0])) for each in emoji_names("strong").ids
    }
    for each in emoji_names("strong", "test").ids:
        style, _, point = each.partition("/")
        assert (point, family(style)) not in families


def test_whole_styles_stay_unseen() -> None:
    assert {each.partition("/")[0] for each in emoji_names("strong").ids} == set(styles()) - set(UNSEEN)


def test_about_the_declared_share_is_held_out() -> None:
    pairs = [held_out(e, style) for style in styles() if style not in UNSEEN for e in clean(style)]
    error = np.sqrt(HELD_OUT * (1 - HELD_OUT) / 1379)  # families make pairs dependent: count emoji, not pairs
    assert abs(np.mean(pairs) - HELD_OUT) < 3 * error


def test_names_to_retain_were_learnt_in_another_style() -> None:
    assert set(emoji_names("strong", "test").labels) <= set(emoji_names("strong").labels)


@pytest.mark.parametrize("style", ["twemoji", "openmoji-color"])
def test_folds_test_every_emoji_once(style: str) -> None:
    tested = [each for fold in range(FOLDS) for each in emoji_kinds(style, fold, "test").ids]
    assert len(tested) == len(set(tested)) == len([e for e in clean(style) if e in folds()])


@pytest.mark.parametrize("fold", range(FOLDS))
def test_the_three_parts_of_a_fold_share_no_emoji_in_any_style(fold: int) -> None:
    parts = [
        {each.partition("/")[2] for style in styles() for each in emoji_kinds(style, fold, part).ids}
        for part in ("train", "val", "test")
    ]
    for one, other in combinations(parts, 2):
        assert one.isdisjoint(other)


def test_every_kind_is_trained_and_tested_in_every_fold() -> None:
    for fold in range(FOLDS):
        for part in ("train", "val", "test"):
            assert set(emoji_kinds("twemoji", fold, part).labels) == set(range(len(KINDS)))


def test_splits_are_the_same_everywhere_and_for_ever() -> None:
    """Results are kept by emoji in the order of these sets, so that another order would be another benchmark."""
    sets = {
        "val": emoji_kinds("twemoji", 2, "val"),
        "test": emoji_kinds("noto", 4, "test"),
        "names": emoji_names("weak"),
        "retention": emoji_names("strong", "test"),
    }
    digests = {
        name: hashlib.sha256(" ".join(each.ids).encode()).hexdigest()[:12] for name, each in sets.items()
    }
    assert digests == SPLITS


def test_no_colour_is_asked_for_where_there_is_none() -> None:
    for style in MONOCHROME:
        for e in clean(style):
            assert COLOURS.isdisjoint(archive().emoji[e].name.replace("-", " ").split())


def test_faulty_drawings_and_copies_are_dropped() -> None:
    for style, point in WRONG:
        assert point in {archive().emoji[e].hex for e in archive().style(style).emoji}
        assert point not in {archive().emoji[e].hex for e in clean(style)}
    black, coloured = (
        dict(archive().style(name).pictures()) for name in ("openmoji-black", "openmoji-color")
    )
    assert all(np.abs(black[e].astype(float) - coloured[e]).mean() >= 1 for e in clean("openmoji-black"))


def test_weak_captions_add_no_word_of_a_kind_to_the_name() -> None:
    for each in archive().emoji:
        for caption in captions(each, "weak"):
            added = caption.replace(each.name, "").replace(",", " ").replace("-", " ").split()
            assert forbidden().isdisjoint(map(root, added)), caption


def test_strong_captions_say_the_kind() -> None:
    for each in archive().emoji:
        told = captions(each, "strong")
        assert told[0] == each.name
        assert each.subgroup not in KIND_OF or KIND_OF[each.subgroup] in told


def test_forms_of_a_word_leak_as_the_word_does() -> None:
    assert all(map(leaks, ("faces", "musical", "sports car", "animals", "hand-made")))
    assert not any(map(leaks, ("spanner", "tooth", "happy", "dog")))
    said = {
        word for each in archive().emoji for caption in captions(each, "weak") for word in caption.split(", ")
    }
    assert said.isdisjoint(
        {"animal", "music", "food", "buildings", "weather"}
    )  # all of which strong captions say
    assert {"seafood", "email"} <= said  # compounds are not seen, as docs/emojishift.md says


def test_both_regimes_show_the_same_pictures() -> None:
    strong, weak = emoji_names("strong"), emoji_names("weak")
    assert list(strong.ids) == list(weak.ids)
    assert any(a != b for a, b in zip(strong.captions, weak.captions, strict=True))


def test_as_a_source_training_cannot_reach_the_test_fold() -> None:
    validated = load("emoji:twemoji:0", split="test")  # what a plan asks for
    assert validated.splits == ("train", "val")
    assert list(validated.ids) == list(emoji_kinds("twemoji", 0, "val").ids)
    assert len(load("emoji:names:weak", split="test")) == len(emoji_names("weak", "test"))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("emoji:names:storng", "strong"),
        ("emoji:twemojo:0", "twemoji"),
        ("emoji:twemoji:7", "folds 0 to 4"),
        ("emoji:twemoji", "emoji:twemoji:0"),
    ],
)
def test_a_wrong_name_is_put_right(spec: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load(spec)


def test_the_suite_declares_one_id_eleven_ood_and_what_to_retain() -> None:
    suite = SUITES["emojishift"]()
    assert [shift.name for shift in suite.of("id")] == ["twemoji"]
    assert len(suite.of("ood")) == 11
    assert [shift.name for shift in suite.of("retain")] == ["names"]
    assert {average.name for average in suite.averages} == {
        "OOD",
        "seen styles",
        "unseen styles",
        "monochrome",
    }
    opened = suite.open()
    assert len(opened) == len(suite.shifts)
    for shift, examples, partial in opened:
        assert not partial
        assert len(examples) > 0
        assert examples.labels.max() < len(shift.classes)


def test_another_style_can_be_the_one_that_is_trained_on() -> None:
    suite = emojishift("openmoji-color", 3)
    assert [shift.name for shift in suite.of("id")] == ["openmoji-color"]
    (unseen,) = [average for average in suite.averages if average.name == "unseen styles"]
    assert unseen.members == ("twemoji", "openmoji-black")


def test_a_run_is_tested_on_its_own_style_and_fold() -> None:
    """And on no emoji that it has trained on, whatever it is asked for."""
    spec = "emoji:openmoji-color:2"
    suite = suite_from_spec("emojishift", spec)
    assert [shift.name for shift in suite.of("id")] == ["openmoji-color"]
    trained = set(load(spec).ids)
    for shift in suite.of("id"):
        assert trained.isdisjoint(shift.load().ids)
    (other,) = suite_from_spec("emojishift:noto", spec).of("id")
    assert other.load().fingerprint == emoji_kinds("noto", 2, "test").fingerprint
    with pytest.raises(UserError, match="only its fold 2 is new to it"):
        suite_from_spec("emojishift:openmoji-color:0", spec)


@pytest.mark.parametrize(("asked", "told"), [("emojishift:noto:9", "folds 0 to 4"), ("emojishift:nato", "noto"),
                                            ("emojishift:noto:x", "expected emojishift:STYLE:FOLD")])  # fmt: skip
def test_a_suite_that_does_not_exist_is_refused(asked: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        suite_from_spec(asked)
