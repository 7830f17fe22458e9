from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tracer.core.errors import UserError
from tracer.data.encoded import content
from tracer.data.scan import scan, validate
from tracer.data.sources import load


@pytest.fixture
def write_table(tmp_path, picture):
    """A function that writes a table beside three images a.png, b.png and c.png."""
    for name in "abc":
        picture(f"{name}.png")

    def write(text: str | bytes, name: str = "t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("header", "image", "caption", "label"),
    [
        ("filepath\ttitle", "filepath", "title", None),
        ("Image Path;Caption;Class Name", "Image Path", "Caption", "Class Name"),
        ("file-name,label,text", "file-name", "text", "label"),
        ("id|img|category", "img", None, "category"),
        ("id,image,label,class_name", "image", None, "class_name"),
    ],
)
def test_columns_and_separator_are_detected_and_reported(write_table, header, image, caption, label):
    mark = next(mark for mark in "\t;,|" if mark in header)
    row = mark.join("a.png" if name == image else "x" for name in header.split(mark))
    examples = load(write_table(f"{header}\n{row}\n"))
    assert examples.ids == ["a.png"]
    assert examples.captioned == (caption is not None)
    assert examples.labelled == (label is not None)
    roles = {"image": image, "caption": caption, "label": label}
    assert set(examples.detected) >= {f"{role} column: {name}" for role, name in roles.items() if name}
    assert any(note.startswith("separator: ") for note in examples.detected)


def test_a_column_option_helps_to_detect_the_separator(write_table):
    path = write_table("where;what, exactly\na.png;a cat, sitting\n")
    examples = load(path, image="where", caption="what, exactly")
    assert examples.captions == [("a cat, sitting",)]


@pytest.mark.parametrize("separator", ["tab", "\t", "\\t"])
def test_the_separator_can_be_set(write_table, separator):
    path = write_table("image\ttext,label\na.png\tone, two\n")
    assert load(path, separator=separator, caption="text,label").captions == [("one, two",)]


def test_quotes_newlines_and_blank_lines(write_table):
    examples = load(write_table('image,text\r\n\r\na.png,"one\ntwo ""three"", four"\r\n\r\n'))
    assert examples.captions == [('one\ntwo "three", four',)]


def test_quotes_mean_nothing_between_tabs_where_they_do_not_close(write_table):
    examples = load(write_table('image\ttext\na.png\t"Hello" he said\nb.png\t5" wide\n', "t.tsv"))
    assert examples.captions == [('"Hello" he said',), ('5" wide',)]
    quoted = load(write_table('image\ttext\na.png\t"one\ttwo"\n', "t.tsv"))
    assert quoted.captions == [("one\ttwo",)]


def test_several_captions_come_from_rows_or_lists(write_table, tmp_path):
    rows = load(write_table("image,text,label\na.png,one,x\nb.png,other,y\na.png,two,x\na.png,one,x\n"))
    assert rows.ids == ["a.png", "b.png"]
    assert rows.captions == [("one", "two"), ("other",)]
    assert "repeated images: 2 rows merged into those before them" in rows.detected
    records = [
        {"image": "a.png", "text": ["one", "two", "", None, "one"], "label": "x"},
        {"image": "b.png", "text": ["other"], "label": "y"},
    ]
    lists = load(write_table("\n".join(map(json.dumps, records)), "t.jsonl"))
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "t.parquet")
    for examples in (lists, load(tmp_path / "t.parquet"), load(write_table(json.dumps(records), "t.json"))):
        assert examples.captions == rows.captions
        assert examples.labels.tolist() == rows.labels.tolist()
        assert examples.fingerprint == rows.fingerprint


def test_numbers_are_labels_whatever_their_type(write_table, tmp_path):
    columns = {"image": ["a.png", "b.png", "c.png"], "label": [10, 9, 10]}
    for kind in (pa.int64(), pa.float64(), pa.string()):
        values = [str(v) if kind == pa.string() else v for v in columns["label"]]
        table = pa.table({"image": columns["image"], "label": pa.array(values, kind)})
        pq.write_table(table, tmp_path / "t.parquet")
        examples = load(tmp_path / "t.parquet")
        assert examples.classes == ("9", "10")
        assert examples.labels.tolist() == [1, 0, 1]


def test_a_split_column_is_understood(write_table):
    path = write_table("image,label,split\na.png,x,Train\nb.png,y,validation\nc.png,z,train\n")
    assert load(path).ids == load(path, split="train").ids == ["a.png", "c.png"]
    held_out = load(path, split="val")
    assert held_out.ids == load(path, split="test").ids == ["b.png"]
    assert held_out.classes == ("x", "y", "z")  # labels mean the same in every split
    assert held_out.labels.tolist() == [1]
    assert held_out.splits == ("train", "val")
    plain = write_table("image,label,set\na.png,x,left\nb.png,y,right\n")
    assert load(plain, split="train").ids == ["a.png", "b.png"]
    assert any("column set: no split" in note for note in load(plain).detected)
    null = [{"image": f"{each}.png", "label": each, "split": None} for each in "ab"]
    assert load(write_table("\n".join(map(json.dumps, null)), "t.jsonl")).splits == ()


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a.png", "./a.png", "b.png", "c.png", "x/../c.png"]),
            st.sampled_from(["cat", "dog"]),
            st.sampled_from(["train", "Training", "val", "eval", "test", "", "left"]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_no_row_is_dropped_and_no_image_is_in_two_splits(write_table, rows):
    """Whatever the table holds, it is refused or every row is in exactly one split."""
    path = write_table("\n".join(["image,label,split", *map(",".join, rows)]) + "\n")
    try:
        splits = load(path, split=None).splits if any(row[2] == "train" for row in rows) else ()
        parts = [load(path, split=split) for split in splits] or [load(path, label="label")]
    except UserError:
        return
    images = {"./a.png": "a.png", "x/../c.png": "c.png"}
    ids = [images.get(name, name) for part in parts for name in part.ids]
    assert len(ids) == len(set(ids))
    if not parts[0].splits or splits:
        assert set(ids) == {images.get(name, name) for name, _, _ in rows}
    for part in parts:
        for name, label in zip(part.ids, part.labels, strict=True):
            assert {key for image, key, _ in rows if image == name} == {part.classes[label]}


def test_wide_records_are_refused_at_once(write_table):
    records = [json.dumps({f"column {i}": 1}) for i in range(20_000)]
    with pytest.raises(UserError, match="20000 columns, more than 10000"):
        load(write_table("\n".join(records), "t.jsonl"))
    names = ",".join(f"c{i}" for i in range(50_000))
    with pytest.raises(UserError, match="50000 columns, more than 10000"):
        load(write_table(f"{names}\n{names}\n"))


@pytest.mark.parametrize("kind", ["binary", "struct"])
def test_parquet_may_hold_the_images_themselves(tmp_path, picture, kind, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    contents = [picture(f"{i}.png").read_bytes() for i in range(4)]
    images = contents if kind == "binary" else [{"bytes": each, "path": None} for each in contents]
    columns = {
        "image": images,
        "path": list("wxyz"),
        "label": list("abab"),
        "split": ["train", "val", "train", "train"],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    train, held_out = load(tmp_path / "t.parquet"), load(tmp_path / "t.parquet", split="val")
    assert train.classes == held_out.classes == ("a", "b")
    assert train.labels.tolist() == [0, 0, 1]
    assert [content(train.images, i) for i in range(3)] == [contents[0], contents[2], contents[3]]
    assert [content(held_out.images, i) for i in range(1)] == [contents[1]]
    assert len(scan(train)) == 3
    del columns["image"]
    pq.write_table(pa.table({"jpeg_data": images, **columns}), tmp_path / "t.parquet")
    with pytest.raises(UserError, match="no image w in"):
        load(tmp_path / "t.parquet")
    assert len(load(tmp_path / "t.parquet", image="jpeg_data")) == 3


def test_paths_as_written_on_windows(write_table, picture):
    picture("deep/er/d.png")
    assert load(write_table("image,label\ndeep\\er\\d.png,x\n")).images[0].size == (7, 9)


BAD = {
    "": "is empty",
    "image,label\n": "no rows",
    "image,label\na.png\n": "line 2: 1 fields under 2 columns",
    "image,text\na.png,one, two\n": "line 2: 3 fields under 2 columns; .*double quotes",
    "image,image\na.png,b.png\n": "more than one column 'image'",
    'image,text\na.png,"never closed\nb.png,two\n': "line 3: .*quotes inside quoted text must be doubled",
    'image,text\na.png,"one" two\n': "line 2: .*quotes inside quoted text must be doubled",
    "picture_of,label\na.png,x\n": "no column that looks like an image path: .*'picture_of'.*--image-column",
    "image,weight\na.png,3\n": "no column that looks like a caption or a label: .*--caption-column",
    "image,label\n,x\n": "row 1: the image path is empty",
    "image,label\nhttp://x.org/a.png,x\n": "is an address: download",
    "image,label\nz.png,x\n": "no image z.png in .*relative to the table",
    "image,label\na.png,x\nb.png,y\na.png,z\n": "rows 1 and 3 give a.png a different label, 'x' and 'z'",
    "image,label\0\na.png,x\n": "zero bytes",
    "image,label\na.png,x\n./a.png,z\n": "rows 1 and 2 give ./a.png a different label, 'x' and 'z'",
    "image,label\na.png,x\nd/../a.png,z\n": "rows 1 and 2 give d/../a.png a different label",
    "image,label,split\na.png,x,train\nb.png,y,\nc.png,x,test\n": r"1 of 3 rows have no split in the column split "
    r"\(row 2\); the first is empty: write train, val or test, or rename the column",
    "image,label,split\na.png,x,train\nb.png,y,holdout\n": "the first says 'holdout'",
    "image,label,split\na.png,x,train\na.png,x,test\nb.png,y,train\n": "rows 1 and 2 give a.png a different split",
    ",".join(f"c{i}" for i in range(50_000)) + "\n": "50000 columns, more than 10000",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong_with_a_table_is_said(write_table, text):
    with pytest.raises(UserError, match=BAD[text]):
        load(write_table(text))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", "{}\n[1]\n", "line 2: expected"),
        ("t.jsonl", '{"image": \n', "line 1: not JSON"),
        ("t.jsonl", '{"image": {"x": 1}, "label": 1}', "row 1: expected a text or a number"),
        ("t.jsonl", "\n", "is empty"),
        ("t.json", "{}", "must hold a list of records"),
        ("t.json", "[{}, 3]", "record 2: expected"),
        ("t.parquet", "PAR1 but not really", "cannot be read as Parquet"),
        ("t.csv", b"\xff\xfea\x00\x00\xd8", "not the utf-16 text"),
        ("t.xlsx", "", "no data of a known kind"),
        ("t.csv.gz", "", "is compressed"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(write_table, name, content, message):
    with pytest.raises(UserError, match=message):
        load(write_table(content, name))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "lable"}, "unknown column 'lable': did you mean label"),
        ({"image": "imag"}, "unknown column 'imag': did you mean image"),
        ({"separator": "comma!"}, "separator 'comma!' must be one character"),
        ({"classes": ["x", "z"]}, "unknown class 'y'"),
    ],
)
def test_options_that_do_not_fit_are_named(write_table, options, message):
    with pytest.raises(UserError, match=message):
        load(write_table("image,label\na.png,x\nb.png,y\n"), **options)


def test_parquet_with_text_that_is_no_utf8_is_refused(tmp_path):
    broken = pa.array([b"a.png", b"\xe7"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"image": broken, "label": broken}), tmp_path / "t.parquet")
    with pytest.raises(UserError, match=r"t\.parquet cannot be read as Parquet"):
        load(tmp_path / "t.parquet")


def test_a_separator_means_nothing_to_json(write_table):
    with pytest.raises(UserError, match="--separator means nothing"):
        load(write_table('{"image": "a.png", "label": "x"}', "t.jsonl"), separator=",")


def test_a_missing_table_names_its_neighbours(write_table, tmp_path):
    write_table("image,label\na.png,x\n", "birds.csv")
    with pytest.raises(UserError, match=r"no file or folder .*brids.csv: .*birds.csv"):
        load(tmp_path / "brids.csv")


names = st.sampled_from(["image", "path", "text", "label", "split", "Image ", "", "x", "label"])
cells = st.one_of(
    st.sampled_from(["a.png", "b.png", "train", "val", "", " ", "1", "02", '"', "9" * 5000, "\ud800"]),
    st.text(max_size=8),
)
tables = st.tuples(
    st.lists(names, max_size=4), st.lists(st.lists(cells, max_size=4), max_size=4), st.sampled_from(",;\t|")
).map(lambda t: "\n".join(t[2].join(row) for row in [t[0], *t[1]]))
values = st.recursive(
    st.one_of(cells, st.none(), st.integers(), st.floats(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)
lines = st.lists(st.dictionaries(names, values, max_size=4).map(json.dumps) | st.text(max_size=9), max_size=4)
FUZZ = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check_load(path, **options):
    """Loading gives valid examples or raises UserError, never anything else."""
    try:
        examples = load(path, **options)
        validate(examples)
    except UserError:
        return
    assert len(examples) > 0
    assert len(examples.fingerprint) == 16
    assert all(examples.captions) or not examples.captioned
    assert ((examples.labels >= 0) & (examples.labels < len(examples.classes))).all() or not examples.labelled


@FUZZ
@given(text=tables)
@example(text="image,label\na.png,\n")
@example(text='image,label\n"a.png,x\n')
def test_no_table_crashes_the_parser(write_table, text):
    check_load(write_table(text.encode(errors="surrogatepass")))


@FUZZ
@given(content=st.binary(max_size=60), separator=st.none() | st.text(max_size=2))
def test_no_bytes_crash_the_parser(write_table, content, separator):
    check_load(write_table(content), separator=separator)
    check_load(write_table(b"image,label\na.png," + content), separator=separator)


@FUZZ
@given(several=lines)
def test_no_json_crashes_the_parser(write_table, several):
    check_load(write_table("\n".join(several).encode(errors="surrogatepass"), "t.jsonl"))
    check_load(write_table(f"[{','.join(several)}]".encode(errors="surrogatepass"), "t.json"))
