from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.core.errors import UserError
from tracer.data.classes import classes, normal_name
from tracer.models.open_clip_compat import open_clip


def test_without_a_list_every_key_is_a_class_under_its_own_name():
    result = classes(["tabby_cat", "golden__retriever", "tabby_cat"])
    assert result.keys == ("golden__retriever", "tabby_cat")
    assert result.names == ("golden retriever", "tabby cat")
    assert result.labels(["tabby_cat", "", "golden__retriever"]).tolist() == [1, -1, 0]


def test_numbers_are_ordered_as_numbers():
    assert classes(["10", "9", "0"]).keys == ("0", "9", "10")


def test_numbers_as_spreadsheets_write_them_are_named_by_value():
    """Pandas writes 7.0 if one label of the column is missing; as text, 10.0 comes before 2.0."""
    keys = [f"{i}.0" for i in range(12)]
    result = classes(keys, [f"name {i}" for i in range(12)])
    assert [result.names[label] for label in result.labels(keys)] == [f"name {i}" for i in range(12)]
    assert classes(keys).keys == tuple(keys)


@pytest.mark.parametrize("form", ["lines", "list", "mapping"])
def test_files_name_the_classes(tmp_path, form):
    path = tmp_path / ("names.txt" if form == "lines" else "names.json")
    names = ["dog", "cat", "newt"]
    content = {"lines": "dog\ncat\n\nnewt\n", "list": json.dumps(names)}
    path.write_text(content.get(form, json.dumps({"DOG": "dog", "Cat": "cat", "newt": "newt"})))
    result = classes(["Cat", "DOG"], path)
    assert result.names == ("dog", "cat", "newt")  # a class without images keeps its place
    assert result.labels(["Cat", "DOG"]).tolist() == [1, 0]


def test_a_list_is_matched_by_spelling_then_number_then_order():
    names = ["red fox", "polar bear"]
    assert classes(["polar_bear", "Red_Fox"], names).labels(["Red_Fox"]).tolist() == [0]
    assert classes(["1"], names).labels(["1"]).tolist() == [1]
    assert classes(["00", "01"], names).labels(["01"]).tolist() == [1]
    by_order = classes(["n02", "n01"], names)
    assert by_order.labels(["n01", "n02"]).tolist() == [0, 1]
    assert by_order.how == "class names: by order, n01 is 'red fox'"


def test_imagenet_by_synset_number_and_name():
    name = open_clip.IMAGENET_CLASSNAMES
    assert classes(["n01443537", "n01440764"], "imagenet").labels(["n01443537"]).tolist() == [1]
    assert classes(["999"], "imagenet").labels(["999"]).tolist() == [999]
    assert classes([name[5]], "imagenet").labels([name[5]]).tolist() == [5]
    assert classes([], "imagenet").names == tuple(name)


@pytest.mark.parametrize(
    ("keys", "spec", "message"),
    [
        (["cat", "dgo"], ["cat", "dog"], "unknown class 'dgo': did you mean dog"),
        (["cot"], {"cat": "a cat"}, "lacks 'cot', and must hold every class: did you mean cat"),
        (["0", "2"], ["cat", "dog"], "label 2 lies outside the 2 class names"),
        (["cat", "dog"], ["cat", "Cat", "dog"], "two classes have one name, 'cat' and 'Cat'"),
        (["a", "b"], {"a": "cat", "b": "cat"}, "two classes have one name, 'cat' and 'cat'"),
        (["Cat", "cat"], ["cat", "dog"], "'Cat' and 'cat' are both the class 'cat'"),
        (["hot_dog", "hot dog"], None, "two classes have one name, 'hot dog' and 'hot_dog': .*--classes"),
        (["St. Bernard", "st bernard"], None, "'St. Bernard' and 'st bernard'"),
        (["1", "01"], None, "two classes have one name, '01' and '1'"),
        (["a"], "nowhere.txt", "unknown class names 'nowhere.txt'"),
    ],
)
def test_classes_that_do_not_fit_are_named(keys, spec, message):
    with pytest.raises(UserError, match=message):
        classes(keys, spec)


@pytest.mark.parametrize(
    "keys", [("C", "C++", "C#"), ("-1", "1"), ("hotdog", "hot dog"), ("?", "!"), ("1.5", "15")]
)
def test_classes_that_differ_stay_apart(keys):
    assert len(classes(keys).names) == len(keys)


KEYS = (
    st.text(st.sampled_from("aAbB _-.,'1０é\u200b\ufe0f\u202e"), min_size=1, max_size=5)
    .map(str.strip)
    .filter(bool)
)


@settings(deadline=None)
@given(st.lists(KEYS, min_size=1, max_size=6))
def test_no_two_keys_share_a_class_and_no_key_is_lost(keys):
    try:
        result = classes(keys)
    except UserError:
        assert len({normal_name(key) for key in set(keys)}) < len(set(keys))
        return
    labels = result.labels(keys).tolist()
    assert len(set(labels)) == len(set(keys))
    shown = ["".join(filter(str.isprintable, unicodedata.normalize("NFKC", name))) for name in result.names]
    assert len({name.casefold() for name in shown}) == len(result.names)
    assert [result.keys[label] for label in labels] == keys


def test_names_that_are_codes_are_warned_of():
    assert "--classes FILE names them" in classes(["0", "1", "2"]).warning
    assert "--classes imagenet" in classes(["n01440764", "n01443537"]).warning
    assert classes(["0", "1"], ["cat", "dog"]).warning == ""
    assert "some classes are numbers" in classes(["0", "cat"]).warning
    assert "'a photo of a class 1': --classes FILE.json" in classes(["class_1", "class_2"]).warning


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (["label-3", "label-12"], "numbered"),
        (["yes", "No"], "answers"),
        (["True", "False"], "answers"),
        (["A", "B"], ""),
        (["1f3a9c", "77be01"], "codes"),
        (["A380", "Cessna 172"], ""),
        (["ox", "ax"], ""),
        (["猫", "犬"], ""),
        (["cat"], ""),
    ],
)
def test_names_that_say_nothing_of_the_images_are_warned_of(keys, kind):
    assert kind in classes(keys).warning
    assert bool(kind) == bool(classes(keys).warning)


@pytest.mark.parametrize(
    "content", ["{", "3", '["a", 1]', '[""]', '{"a": ["b"]}', "[]", '["a", "a"]', "[" * 100_000]
)
def test_broken_files_are_refused(tmp_path, content):
    path = tmp_path / "names.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"names\.json"):
        classes(["a"], path)


def test_a_label_that_appears_later_is_named():
    with pytest.raises(UserError, match="unknown class 'dgo': did you mean dog"):
        classes(["cat", "dog"]).labels(["dgo"])
