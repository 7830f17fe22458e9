"""A folder of images: a subfolder for each class, or captions in text files beside the images."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.encoded import Files
from tracer.data.examples import Examples, assemble, left_out
from tracer.data.options import ABBREVIATIONS, SPLITS, Options, Splits, canonical, splits_by_name
from tracer.storage.images import SUFFIXES

# Kinds of images that are not opened: their classes would shrink or vanish unnoticed.
OTHER_SUFFIXES = frozenset(
    (
        *(".jxl", ".jp2", ".j2k", ".svg", ".psd", ".eps", ".ps", ".pdf", ".ico", ".icns"),
        *(".tga", ".wmf", ".emf", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2", ".exr"),
        ".hdr",
    )
)

# The first bytes of JPEG, PNG, GIF, WebP, BMP, TIFF, AVIF and HEIC: of files whose names do not say what they are.
SIGNATURE = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n|GIF8[79]a|RIFF....WEBP|BM....\0\0\0\0|II\*\0|MM\0\*|....ftyp(?:avif|hei|hev|mif1)",
    re.DOTALL,
)


def read_folder(root: Path, options: Options) -> Examples:
    """Read the images below `root`: labels from the top-level folders, captions from `.txt` files beside the images."""
    options.refuse("a folder of images", "image", "caption", "label", "separator")
    files, passed_over = _files(root)
    images = [path for path in files if is_image(root, path)]
    other_kinds = _other_kinds(files, root)
    if not images:
        looked = f"looked for {', '.join(sorted(SUFFIXES))} at any depth"
        raise UserError("; ".join((f"no images in {root}: {looked}", *other_kinds)))
    split_of = splits_of(images, root)
    divided = [path for path in images if not split_of or "/" in path]  # others lie beside the splits
    of_image = [split_of[path.partition("/")[0]] for path in divided] if split_of else []
    renamed = "" if set(split_of) == set(split_of.values()) else f" {', '.join(sorted(split_of))}"
    split = Splits(of_image, f"split folders{renamed}").choose(options, str(root))
    folders_of = {path: path.split("/")[bool(split.names) : -1] for path in divided}  # inside the split
    own_split = dict(zip(divided, of_image or [""] * len(divided), strict=True))
    classed = {own_split[path] for path in divided if folders_of[path]}  # splits with class folders
    usable = {path for path in divided if folders_of[path] or own_split[path] not in classed}
    paths = divided if split.rows is None else [divided[row] for row in split.rows]
    used = [path for path in paths if path in usable]
    labelled = bool(folders_of[used[0]])
    captions = _captions(root, used, files)
    top = used[0].partition("/")[0] if split.names else ""
    nested = nesting_warnings(root, top, [folders_of[path] for path in used])
    return assemble(
        str(root),
        Files(root, tuple(used)),
        used,
        keys=[folders_of[path][0] for path in used] if labelled else None,
        vocabulary=(folders[0] for folders in folders_of.values() if folders),
        naming=options.classes,
        captions=captions,
        split=split._replace(rows=None),
        detected=("captions: text files beside the images" if any(captions) else "",),
        left_out=left_out([*passed_over, *_unused(files, set(images), usable, bool(split_of))]),
        warnings=(
            *(nested if labelled and not any(captions) else ()),
            *other_kinds,
            *(_empty(root, images, split.names) if labelled else ()),
        ),
    )


def image_files(root: Path) -> tuple[str, ...]:
    """Relative paths of the images below `root`, at any depth, in order."""
    return tuple(path for path in _files(root)[0] if is_image(root, path))


def other_kinds(root: Path) -> tuple[str, ...]:
    """A warning if there are images below `root` of kinds that are not read."""
    return _other_kinds(_files(root)[0], root)


def _files(root: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Relative paths of the visible files below `root`, sorted, and what is passed over: the reason and the path.

    Links are followed, except to a parent folder.
    """
    parents: dict[str, frozenset[tuple[int, int]]] = {str(root): frozenset()}
    files, passed_over = list[str](), list[tuple[str, str]]()
    for folder, below, names in os.walk(root, followlinks=True):
        status = Path(folder).stat()
        here = (status.st_dev, status.st_ino)
        prefix = "".join(f"{part}/" for part in Path(folder).relative_to(root).parts)
        if here in parents[folder]:
            below.clear()
            passed_over.append(("links to a folder above them", prefix.rstrip("/")))
            continue
        hidden = [name for name in (*below, *names) if name.startswith(".")]
        passed_over += [("hidden files and folders", f"{prefix}{name}") for name in sorted(hidden)]
        below[:] = [name for name in below if not name.startswith(".")]
        parents |= {os.path.join(folder, name): parents[folder] | {here} for name in below}  # noqa: PTH118
        files += [f"{prefix}{name}" for name in names if not name.startswith(".")]
    return sorted(files), sorted(passed_over)


def is_image(root: Path, path: str) -> bool:
    """Whether the name of a file below `root`, or else its first bytes, say that it is an image that can be read."""
    suffix = _suffix(path)
    if suffix in SUFFIXES or suffix in OTHER_SUFFIXES or suffix == ".txt":
        return suffix in SUFFIXES
    file = root / path
    if not file.is_file():  # nor a pipe, which would never end
        return False
    try:
        with file.open("rb") as stream:
            return SIGNATURE.match(stream.read(16)) is not None
    except OSError:
        return False


def _unused(files: list[str], images: set[str], usable: set[str], divided: bool) -> Iterator[tuple[str, str]]:
    """Files that no split uses, each after the reason."""
    beside = {_text_of(path) for path in usable}
    for path in files:
        if path in images and path not in usable:
            outside = divided and "/" not in path
            yield f"images {'beside the split' if outside else 'outside the class'} folders", path
        elif path.endswith(".txt") and path not in beside:
            yield "text files beside no image of their name", path
        elif path not in images and not path.endswith(".txt"):
            other = _suffix(path) in OTHER_SUFFIXES
            yield "images of kinds that are not read" if other else "files that are no images", path


def beside(root: Path, examples: Examples, used: set[str]) -> Examples:
    """Examples out of the files `used` of a folder, with the other files below it as left out."""
    files, passed_over = _files(root)
    names = {posixpath.normpath(path) for path in used}
    others = [path for path in files if path not in names]
    reasons = [
        "images that are not named" if is_image(root, path) else "files that are no images" for path in others
    ]
    unused = left_out([*passed_over, *zip(reasons, others, strict=True)])
    return replace(examples, left_out=(*examples.left_out, *unused))


def _suffix(path: str) -> str:
    return posixpath.splitext(path)[1].lower()


def _other_kinds(files: list[str], root: Path) -> tuple[str, ...]:
    """A warning if there are images of kinds that are not read."""
    counts = Counter(_suffix(path) for path in files if _suffix(path) in OTHER_SUFFIXES)
    if not counts:
        return ()
    listed = ", ".join(f"{count} {suffix}" for suffix, count in counts.most_common())
    return (
        f"{root}: images of kinds that are not read are left out ({listed}): convert them to JPEG or PNG",
    )


def _empty(root: Path, images: list[str], splits: tuple[str, ...]) -> Iterator[str]:
    """A remark on class folders without any image, which are no classes."""
    parents = {path.rpartition("/")[0] for path in images}
    used = {"/".join(parent.split("/")[: 1 + bool(splits)]) for parent in parents}
    tops = sorted({name.partition("/")[0] for name in used}) if splits else [""]
    below = (each for top in tops for each in sorted((root / top).iterdir()))
    folders = [each for each in below if each.is_dir() and not each.name.startswith(".")]
    empty = [each.name for each in folders if each.relative_to(root).as_posix() not in used]
    if empty:
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        yield f"{root}: the folder {empty[0]}{more} holds no image, and is no class"


def _captions(root: Path, paths: list[str], files: list[str]) -> list[tuple[str, ...]]:
    """The lines of the text file beside each image."""
    texts = {path for path in files if path.endswith(".txt")}
    return [_lines(root / path) if path in texts else () for path in map(_text_of, paths)]


def _text_of(path: str) -> str:
    """The name of the text file beside an image."""
    return f"{posixpath.splitext(path)[0]}.txt"


def _lines(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the caption file {path} cannot be read: {error}") from error
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def splits_of(paths: list[str], root: Path) -> dict[str, str]:
    """The split of each top-level folder, if all are named after splits; empty if none is.

    Raises UserError if two or more are and others are not, or if the splits lie inside the classes.
    """
    tops = {path.partition("/")[0] for path in paths if "/" in path}
    splits = splits_by_name(tops)
    if splits.keys() == tops:
        return splits
    if len(set(splits.values())) > 1:
        both, other = " and ".join(sorted(splits)), min(tops - splits.keys())
        raise UserError(
            f"{root} holds {both} beside {other}: are they splits or classes? Give {root / min(splits)} if they "
            f"are classes of {root}, or move {other} elsewhere if they are splits"
        )
    inside = {path.split("/")[1] if path.count("/") > 1 else "" for path in paths}
    splits = splits_by_name(inside)
    if len(set(splits.values())) > 1 and splits.keys() == inside:
        top, second = min(paths).split("/")[:2]
        raise UserError(
            f"{root} has splits inside its classes, such as {top}/{second}: put the splits outside, as in "
            f"{root / second / top}, or list the images in a table with a column split"
        )
    return {}


def nesting_warnings(root: Path, split: str, folders: list[list[str]]) -> Iterator[str]:
    """A warning if the classes seem to lie one level deeper than they were looked for.

    `folders` are those of each image, inside the folder `split` if there are splits. Raises UserError if that is
    certain: one folder that holds all others, or folders such as photos and test-photos, or extra and train, that hold
    the same folders.
    """
    below: dict[str, set[str]] = defaultdict(set)  # of each class folder, the folders in it; "" for images
    for own in folders:
        below[own[0]].add(own[1] if len(own) > 1 else "")
    if len(below) == 1:
        _refuse_one_folder(root, split, folders)
        return
    shared = set.intersection(*below.values())
    alike = all(2 * len(shared) >= len(folders) for folders in below.values())
    if len(shared) < 2 or not alike or any("" in folders for folders in below.values()):
        return
    tops, shown = " and ".join(sorted(below)[:2]), " and ".join(sorted(shared)[:2])
    message = f"{root}: {tops} hold the same folders, {shown}"
    split_of = {top: _split_in(top)[0] for top in sorted(below)}
    by_name = any(split_of.values()) and len({_split_in(top)[1] for top in below}) == 1
    if by_name or splits_by_name(below):
        training = next((top for top, split in split_of.items() if split in ("", "train")), min(below))
        validation = next((top for top, split in split_of.items() if split == "val"), None)
        held_out = f" --held-out {root / validation}" if validation else ""
        instead = f"give {root / training}{held_out}"
        if by_name:
            raise UserError(f"{message}, so they are data sets, not classes: {instead}")
        raise UserError(
            f"{message}: {instead} if they are data sets, or put the images of each class into its folder"
        )
    yield f"{message}: if these are the classes, give {root / min(below)}"


def _refuse_one_folder(root: Path, split: str, folders: list[list[str]]) -> None:
    """Raise UserError if all images lie in one folder, at any depth, that holds several folders."""
    common = posixpath.commonpath("/".join(own) for own in folders)
    depth = common.count("/") + 1
    inside = {own[depth] if len(own) > depth else "" for own in folders}
    if len(inside) == 1 or "" in inside:
        return
    shown = " and ".join(sorted(inside)[:2])
    instead = f"--data {root / split / common}, and other splits with --held-out" if split else root / common
    where = "it" if depth == 1 else common
    raise UserError(
        f"{root} has one class, {folders[0][0]}, with the folders {shown} in {where}: give {instead}"
    )


def _split_in(name: str) -> tuple[str, str]:
    """The split that is part of a name, as in test-photos, empty if there is none; and the other words of it."""
    if abbreviated := ABBREVIATIONS.get(name.lower()):
        return abbreviated, ""
    words = [word for word in re.split(r"[\W_\d]+", name.lower()) if word]
    splits = [canonical(word) for word in words if canonical(word) in SPLITS]
    others = [word for word in words if canonical(word) not in SPLITS]
    return next(iter(splits), ""), " ".join(others)
