"""A model that was found: what it is, the files that it needs, and the open_clip module built from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torch import nn

from tracer.core.errors import UserError
from tracer.models.download import TEXT_FILES, Download, hub_files, hub_weights_needed, reach_text_files
from tracer.models.huggingface.architecture import set_trunk_activation
from tracer.models.load_guards import check_text_tower, explained, quiet, real_numbers
from tracer.models.open_clip_compat import open_clip
from tracer.storage.safetensors_io import file_blake2b

CONFIG_FILE = "open_clip_config.json"
WEIGHTS_FILE = "open_clip_model.safetensors"
WEIGHTS_DIGEST = "weights_digest"  # in an export's config, beside what open_clip reads
HUB, FOLDER = SCHEMAS = ("hf-hub:", "local-dir:")  # prefixes of models that come with weights


@dataclass(frozen=True)
class ModelSource:
    """A model that exists: its name in open_clip, its weights (a tag or a file) and its config."""

    name: str
    weights: str | None
    config: dict[str, Any]
    digest: str | None = None  # of the weights file of an exported folder, from its config
    preprocess: dict[str, Any] | None = None  # how weights in a file want their images

    def build(self) -> Any:
        """The open_clip model, in fp32 on the CPU, in train mode."""
        for file in self.files:
            if self.digest is not None and file_blake2b(file) != self.digest:
                raise UserError(f"{file} is damaged: it does not match its digest in {CONFIG_FILE}")
        self.fetch()
        random = self.weights is None and not self.name.startswith(SCHEMAS)
        source = self.name + (f" with weights {self.weights!r}" if self.weights else "")
        text = self._text_tower()
        with quiet(), explained(source), real_numbers(source):
            if text.get("hf_model_name"):
                check_text_tower(text["hf_model_name"])
            clip = open_clip.create_model(
                self.name,
                pretrained=self.weights,
                force_quick_gelu=bool(self.config.get("quick_gelu")),
                force_preprocess_cfg=self.preprocess,
                pretrained_text=False,  # do not download the base text tower of an HF model
                text_cfg=text,
                require_pretrained=not random,
                weights_only=True,
            )
        set_trunk_activation(clip, self.config)
        if random and isinstance(clip, open_clip.CoCa):
            # open_clip leaves this matrix as the memory was: not finite, or different at the same seed.
            projection: Any = clip.text_decoder.text_projection
            nn.init.normal_(projection, std=len(projection) ** -0.5)
        return clip.train()

    @property
    def download(self) -> Download | None:
        """The weights that open_clip fetches by their tag; None for random ones, and for those in a file or folder."""
        return Download(self.name, self.weights) if self.weights is not None and not self.files else None

    def fetch(self) -> None:
        """Download the weights if they are not on this machine; the error says how to do without a network."""
        if self.needed() and self.download is not None:
            self.download.fetch()

    def needed(self) -> str:
        """What has to be downloaded, as a sentence; empty if all is here. Raises UserError if it is out of reach.

        Whether the files of a text tower or tokenizer of transformers can be had is checked too.
        """
        needed = self.download.needed() if self.download is not None else ""
        if self.name.startswith(HUB):
            needed = hub_weights_needed(self.name.removeprefix(HUB))
        if not self.name.startswith(FOLDER):  # which has the files of its tokenizer beside the weights
            reach_text_files(self.name, self.config["text_cfg"])
        return needed

    def outlook(self) -> str:
        """What training has to fetch first, or why it cannot, as a sentence; empty if all is on this machine."""
        try:
            return self.needed()
        except UserError as error:
            return str(error)

    @property
    def files(self) -> list[Path]:
        """The local files that the weights are in; none if they are not on this machine or come by name."""
        if self.name.startswith(FOLDER):
            file = open_clip.factory._find_checkpoint_in_dir(Path(self.name.removeprefix(FOLDER)))
            if file and not Path(file).is_file():  # a pipe or a device would be read without an end
                raise UserError(f"{file} is no file")
            return [Path(file)] if file else []
        return [Path(self.weights)] if self.weights and Path(self.weights).is_file() else []

    @property
    def fetched(self) -> dict[str, Path]:
        """The files of this model that came from the network, by name: another download may replace them."""
        text = self.config.get("text_cfg") or {}
        names = [self.name] if self.name.startswith(HUB) else []
        names += [text[name] for name in TEXT_FILES if text.get(name)]
        files = {} if self.download is None else self.download.stored
        for name in names:
            files |= hub_files(name.removeprefix(HUB))
        return files

    def _text_tower(self) -> dict[str, Any]:
        """The settings of the text tower. An export of a tower of transformers has its config in its own folder.

        The name in the model's config may be a folder of another machine, or a repository out of reach.
        """
        folder, text = Path(self.name.removeprefix(FOLDER)), self.config.get("text_cfg") or {}
        if not text.get("hf_model_name"):
            return text
        place = str(folder) if (folder / "config.json").is_file() else text["hf_model_name"]
        return {**text, "hf_model_name": place, "hf_model_pretrained": False}

    def tokeniser(self) -> Any:
        """The model's function from texts to token ids. Raises UserError if its files are out of reach."""
        if not self.name.startswith(FOLDER):
            name = self.config["text_cfg"].get("hf_tokenizer_name")
            reach_text_files(self.name, {"hf_tokenizer_name": name})
        with quiet(), explained(f"the tokenizer of {self.name}"):
            if self.config["text_cfg"].get("hf_tokenizer_name"):
                return open_clip.get_tokenizer(self.name, trust_remote_code=False)
            return _tokeniser(self.name, json.dumps(self.config["text_cfg"]))


@cache
def _tokeniser(name: str, text_config: str) -> Any:
    """open_clip's own tokenizer of a model, built once: its table takes longer to read than a small model's weights."""
    del text_config  # of a folder that is written anew, it may differ under the same name
    return open_clip.get_tokenizer(name)
