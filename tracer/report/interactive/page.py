"""The page of `tracer try` (`pip install 'tracer-clip[try]'`): served to this machine alone, and sending nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from tracer.core.errors import UserError
from tracer.data.encoded import Files
from tracer.evaluation.measured import evenly_spaced
from tracer.report.interactive.comparison import Comparison
from tracer.report.interactive.local import ADDRESS, Local, own_folder
from tracer.report.templates import environment

LARGEST_UPLOAD = "10mb"
SHOWN = 8  # images of a search
PICKED = 24  # images to pick from
CHANGED = ("Learned", "Forgotten")  # of the report's strips
# As many columns as fit: Gradio's own are 100 pixels wide at least and run out of their box. Small images are enlarged.
STYLE = """
.grid-container { grid-template-columns: repeat(auto-fill, minmax(min(120px, 30%), 1fr)) !important;
  grid-template-rows: none !important; grid-auto-rows: auto !important; }
.grid-wrap { min-height: 0 !important; }
.image-frame img { object-fit: contain !important; }
table { width: 100%; }
meter { display: block; width: 100%; }
figure { display: inline-block; vertical-align: top; margin: 6px; width: 110px; font-size: 12px; }
"""


@contextmanager
def served(comparisons: Sequence[Comparison], port: int) -> Iterator[tuple[Any, str]]:
    """Serve the page from a thread while the context lasts: Gradio's `Blocks` and the address.

    `port` 0 takes a free one. Its files, uploads among them, lie in a folder of their own, which goes with it.
    """
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
    with own_folder() as folder:
        os.environ["GRADIO_TEMP_DIR"] = str(folder)  # read when a component is made, and at each upload
        import gradio
        from starlette.middleware import Middleware

        # No fonts from the web.
        system = gradio.themes.Base(font=["system-ui", "sans-serif"], font_mono=["monospace"])
        blocks = page(comparisons)
        try:
            app, address, _ = blocks.launch(
                server_name=ADDRESS,
                server_port=port or None,
                share=False,
                max_file_size=LARGEST_UPLOAD,
                theme=system,
                css=STYLE,
                app_kwargs={"middleware": [Middleware(Local)]},
                footer_links=[],
                prevent_thread_lock=True,
                quiet=True,
            )
            # Once more, around what the library puts before it: it would tell a foreign page that it may ask.
            app.middleware_stack = Local(app.middleware_stack)
            yield blocks, address
        finally:
            blocks.close(verbose=False)


def page(comparisons: Sequence[Comparison]) -> Any:
    """The page as a Gradio `Blocks`, a tab for each run."""
    import gradio

    with gradio.Blocks(title="tracer try", analytics_enabled=False) as blocks:
        gradio.Markdown("# Before and after finetuning")
        for each in comparisons:
            with gradio.Tab(each.title):
                _run(gradio, each)
    return blocks


def _run(gradio: Any, each: Comparison) -> None:
    own = evenly_spaced(len(each.examples), PICKED).tolist()
    with gradio.Tab("Name"), gradio.Row():
        with gradio.Column():
            # By path: Gradio would decode any format that Pillow knows, PostScript among them.
            image = gradio.Image(
                type="filepath",
                image_mode=None,
                format="png",
                sources=["upload", "clipboard"],
                buttons=[],
                label="Drop an image",
                height=240,
            )
            gradio.Markdown("or pick one of the run's held-out images:")
            pictures = [*map(each.image, own)]
            picked = gradio.Gallery(pictures, height=260, allow_preview=False, show_label=False, buttons=[])
        with gradio.Column():
            names = gradio.Textbox("\n".join(each.classes[:20]), lines=6, label="Names, one a line")
            button = gradio.Button("Compare", variant="primary")
            table = gradio.HTML()
        button.click(lambda image, names: name(each, image, names), [image, names], table)

        def pick(event: Any) -> Image.Image:
            return each.image(own[event.index])

        pick.__annotations__["event"] = gradio.SelectData  # by which the library knows what to pass
        picked.select(pick, None, image)
    with gradio.Tab("Search"):
        text = gradio.Textbox(label="A text", placeholder="a photo of …")
        find = gradio.Button("Find", variant="primary")
        message = gradio.HTML()
        galleries = []
        with gradio.Row():
            for label in ("pretrained", "finetuned"):
                with gradio.Column():
                    gradio.Markdown(f"### {label}")
                    galleries.append(gradio.Gallery(allow_preview=False, show_label=False, buttons=[]))
        gradio.on([find.click, text.submit], lambda text: search(each, text), text, [*galleries, message])
    with gradio.Tab("Changes"):
        gradio.HTML(changes(each))


def name(each: Comparison, file: str | None, names: str) -> str:
    """The scores of an image over names as a table, or what is missing. It is read like an image of a data set."""
    if file is None:
        return "<p>Drop an image, or pick one.</p>"
    images = Files(Path(file).parent, (Path(file).name,), white=each.run.experiment.white_level)
    return _or_message(lambda: html().scores(each.scores(images[0], names.splitlines())))


def search(each: Comparison, text: str) -> tuple[list[Image.Image], list[Image.Image], str]:
    """The images that each model finds for a text, and a message where there is a problem."""
    try:
        before, after = each.search(text, SHOWN)
    except UserError as error:
        return [], [], html().message(error)
    return [*map(each.image, before)], [*map(each.image, after)], ""


def changes(each: Comparison) -> str:
    """The images that were learned and forgotten, with what both models said."""
    return _or_message(lambda: html().changes(each.changed(), CHANGED))


def html() -> Any:
    """The macros of the page's template."""
    return environment().get_template("try.html.j2").module


def _or_message(text: Callable[[], str]) -> str:
    try:
        return text()
    except UserError as error:
        return html().message(error)
