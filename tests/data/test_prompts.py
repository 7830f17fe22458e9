from __future__ import annotations

import pytest

from tracer.core.errors import UserError
from tracer.models.open_clip_compat import open_clip
from tracer.models.prompts import render, templates


def test_named_sets_say_what_open_clip_says():
    for name, functions in [
        ("openai", open_clip.OPENAI_IMAGENET_TEMPLATES),
        ("simple", open_clip.SIMPLE_IMAGENET_TEMPLATES),
    ]:
        prompts = templates(name)
        assert [render(each, "red panda") for each in prompts] == [say("red panda") for say in functions]
    assert len(templates("openai")) == 80


def test_released_prompts_are_openais_and_six_more():
    assert templates("paper") == templates("openai")
    released = templates("released")
    assert len(released) == len(set(released)) == 86
    assert released[:80] == templates("openai")
    assert [render(each, "dog") for each in released[80:]] == [
        "a photo containing a small dog",
        "a photo containing a vague dog",
        "a photo containing a distant dog",
        "a photo containing a partially visible dog",
        "a photo containing a hidden dog",
        "a photo containing a faint dog",
    ]


def test_plain_sets_and_explicit_templates():
    assert templates("name") == ("{}",)
    assert [render(each, "7") for each in templates("digit")] == ["the digit 7"]
    assert templates(["a {}", "the {}"]) == ("a {}", "the {}")
    assert templates("an X-ray of {}") == ("an X-ray of {}",)


def test_a_name_with_braces_is_kept():
    assert render("the set {}", "{a, {}}") == "the set {a, {}}"


def test_a_file_holds_one_template_a_line(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeffa photo of a {}.\r\n\r\n  ein Bild: {}  \n".encode())
    assert templates(path) == ("a photo of a {}.", "ein Bild: {}")
    assert templates(str(path)) == templates(path)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("opneai", "unknown template set or file 'opneai': did you mean openai"),
        ([], "is empty"),
        (["a photo"], "'a photo'.*exactly one {}"),
        (["{} and {}"], "exactly one {}"),
        ("{} and {}", "exactly one {}"),
    ],
)
def test_bad_templates_are_named(spec, message):
    with pytest.raises(UserError, match=message):
        templates(spec)


def test_an_empty_or_binary_file_is_refused(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("\n")
    with pytest.raises(UserError, match=r"empty.txt is empty"):
        templates(path)
    path.write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(UserError, match="cannot be read"):
        templates(path)
