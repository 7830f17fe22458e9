"""Weights that open_clip downloads: whether they are on this machine, and how to go on without a network."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any

from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import logging as hub_logging

from tracer.core.errors import UserError
from tracer.models.load_guards import explained
from tracer.models.open_clip_compat import open_clip

CONNECT_TIMEOUT = 6.0  # seconds until a host that does not answer counts as out of reach
TEXT_PATTERNS = ("*.json", "*.txt", "*.model")  # configs and tokenizers
TOKENIZER_SUFFIXES = (".json", ".txt", ".model", ".spm", ".bpe", ".tiktoken", ".vocab")  # and configs
WEIGHTS_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")


@dataclass(frozen=True)
class Download:
    """A file that open_clip fetches for a model: of a repository of the Hugging Face hub, or by its URL."""

    model: str
    tag: str

    @cached_property
    def config(self) -> dict[str, Any]:
        """open_clip's entry for these weights."""
        return open_clip.get_pretrained_cfg(self.model, self.tag)

    @property
    def repository(self) -> str:
        """Name of the repository on the hub; empty if the weights have a URL only."""
        return self.config.get("hf_hub", "").rpartition("/")[0]

    @property
    def files(self) -> list[str]:
        """Names under which the weights may be stored, the preferred one first."""
        if not self.repository:
            return [self.config.get("url", "").rpartition("/")[2]]
        name = self.config["hf_hub"].rpartition("/")[2] or open_clip.constants.HF_WEIGHTS_NAME
        return [*open_clip.pretrained._get_safe_alternatives(name), name]

    @property
    def stored(self) -> dict[str, Path]:
        """The file on this machine that open_clip reads the weights from, by name; empty if there is none."""
        places = (
            [str(Path.home() / ".cache" / "clip" / self.files[0])]
            if not self.repository
            else [try_to_load_from_cache(self.repository, file) for file in self.files]
        )
        files = [Path(place) for place in places if isinstance(place, str) and Path(place).is_file()]
        return {file.name: file for file in files[:1]}

    @property
    def cached(self) -> bool:
        """Whether the weights are on this machine."""
        return bool(self.stored)

    @property
    def _url(self) -> str:
        return constants.ENDPOINT if self.repository else self.config.get("url", "")

    def needed(self) -> str:
        """What `fetch` would download, as a sentence; empty if all is here. Raises UserError if it is out of reach."""
        if self.cached or not self._url:
            return ""
        if problem := unreachable(self._url):
            raise self._missing(problem)
        host = host_and_port(self._url)[0]
        return f"the weights {self.tag!r} of {self.model} are not on this machine: training downloads them from {host}"

    def fetch(self) -> None:
        """Download the weights; the error says which file to fetch elsewhere."""
        hub_logging.set_verbosity_error()
        try:
            open_clip.download_pretrained(self.config)
        except (OSError, RuntimeError, ValueError):
            raise self._missing(f"the download from {host_and_port(self._url)[0]} failed") from None

    def _missing(self, problem: str) -> UserError:
        return UserError(
            f"the weights {self.tag!r} of {self.model} are not on this machine and {problem}: {self._advice}"
        )

    @property
    def _advice(self) -> str:
        if not self.repository:
            return f"on another machine fetch {self.config['url']} and copy it to ~/.cache/clip here"
        return (  # the tag says how images are normalised and whether the file needs QuickGELU
            f"on another machine fetch {self.files[0]} from huggingface.co/{self.repository}, copy it here, and give "
            f"--model {self.model} --pretrained FILE@{self.tag}"
        )


TEXT_FILES = {"hf_tokenizer_name": "tokenizer_config.json", "hf_model_name": "config.json"}


def text_files_missing(text: Mapping[str, Any]) -> dict[str, str]:
    """Repositories of the hub, and a file of each, that a text config needs and that are not on this machine."""
    needed = ((text[key], file) for key, file in TEXT_FILES.items() if text.get(key))
    return {name: file for name, file in needed if not Path(name).is_dir() and not in_hub_cache(name, file)}


def reach_text_files(model: str, text: Mapping[str, Any]) -> None:
    """Raise if the tokenizer or text tower of transformers is neither on this machine nor within reach."""
    with explained(model):  # names in a stranger's config may be no names
        missing = text_files_missing(text)
    for repository, file in missing.items():
        reach_hub(
            f"{file} of {repository}, which {model} needs for its texts, is", repository, *TEXT_PATTERNS
        )


def reach_hub(what: str, repository: str, *patterns: str) -> None:
    """Raise UserError, with a way to do without a network, if the hub does not answer."""
    if problem := unreachable_hub():
        raise UserError(f"{what} not on this machine and {problem}: {copy_cache(repository, *patterns)}")


def copy_cache(repository: str, *patterns: str) -> str:
    """How to bring files of the hub to a machine without network."""
    folder = _cache_of(repository)
    command = " ".join(("hf download", repository, *(f"--include '{file}'" for file in patterns)))
    return f"on another machine run `{command}` and copy {folder.name} of its cache to {folder.parent} here"


def _cache_of(repository: str) -> Path:
    return Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"


def in_hub_cache(repository: str, file: str) -> bool:
    """Whether this file of the hub is on this machine."""
    return isinstance(try_to_load_from_cache(repository, file), str)


def hub_files(repository: str) -> dict[str, Path]:
    """Configs, tokenizers and weights of this repository that are on this machine, by repository and name."""
    folder = _cache_of(repository)
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:  # a folder, or nothing of it is here
        return {}
    read = (*TOKENIZER_SUFFIXES, *WEIGHTS_SUFFIXES)
    files = sorted(file for file in snapshot.glob("*") if file.suffix in read and file.is_file())
    return {f"{repository}/{file.name}": file for file in files}


def hub_weights_needed(repository: str) -> str:
    """What has to be downloaded, as a sentence; empty if all is here. Raises UserError if it is out of reach."""
    if any(file.suffix in WEIGHTS_SUFFIXES for file in hub_files(repository).values()):
        return ""
    reach_hub(f"the weights of hf-hub:{repository} are", repository)
    return f"the weights of hf-hub:{repository} are not on this machine: training downloads them"


def known_absent(repository: str, file: str) -> bool:
    """Whether the hub has answered before that this repository has no such file."""
    answer = try_to_load_from_cache(repository, file)
    return answer is not None and not isinstance(answer, str)


def fetch_beside(repository: str, names: Sequence[str]) -> Path | None:
    """The folder of the hub's cache with these files, as far as the hub has them; None if it has not the first."""
    with explained(f"hf-hub:{repository}"):  # the hub's client refuses what cannot be a name
        for name in names:
            if in_hub_cache(repository, name) or known_absent(repository, name) or unreachable_hub():
                continue
            with suppress(HfHubHTTPError, OSError):  # most repositories have no such file
                hf_hub_download(repository, name)
        place = try_to_load_from_cache(repository, names[0])
    return Path(place).parent if isinstance(place, str) else None


def unreachable_hub() -> str | None:
    """Why the hub cannot be reached; None if it answers."""
    return unreachable(constants.ENDPOINT)


def unreachable(url: str) -> str | None:
    """Why this host cannot be reached; None if it answers, or if a proxy stands between."""
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return None
    answers: list[bool] = []
    # In a thread, because a name server that does not answer is not bound by the timeout of a connection.
    thread = Thread(target=lambda: answers.append(_connects(*host_and_port(url))), daemon=True)
    thread.start()
    thread.join(CONNECT_TIMEOUT + 1)
    return None if answers == [True] else f"{host_and_port(url)[0]} does not answer"


def host_and_port(url: str) -> tuple[str, int]:
    """Host and port of an address."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.partition("/")[0].partition(":")
    return host, int(port or (80 if scheme == "http" else 443))


def _connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True
