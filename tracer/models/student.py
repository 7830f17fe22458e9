"""The model that is trained: an image tower, a text tower and an optional classification head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

import torch
from jaxtyping import Float, Int, Num
from PIL.Image import Image
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from tracer.core.batch import Batch, Embedding
from tracer.core.errors import UserError
from tracer.core.weights import Weights, check_finite, check_fit
from tracer.models.open_clip_compat import open_clip
from tracer.models.running_statistics import running_layers
from tracer.models.text import EndOfText, Tokeniser, encode_text, text_end, text_tower
from tracer.models.towers import Tower, towers_of
from tracer.storage.images import seen
from tracer.storage.safetensors_io import read_weights as read_weights

CACHE_BYTES = 2**28  # of remembered text embeddings
MAX_LOG_SCALE = 4.605170185988092  # ln 100, where CLIP clamps its learned scale


class Head(nn.Module):
    """A linear classifier over image features f: s W f/‖f‖ + b with a fixed s, or W f + b where s is None."""

    scale: Tensor | None

    def __init__(self, weight: Float[Tensor, "c d"], bias: bool = True, scale: float | None = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach().clone())
        self.bias = nn.Parameter(weight.new_zeros(len(weight))) if bias else None
        self.register_buffer("scale", None if scale is None else weight.new_tensor(scale))

    def forward(self, features: Float[Tensor, "n d"]) -> Float[Tensor, "n c"]:
        if self.scale is not None:
            features = self.scale * normalize(features, dim=-1)
        return linear(features, self.weight, self.bias)


class Student(nn.Module):
    """An open_clip model: `student(batch, needs)` computes what the objective needs and nothing else.

    For inference, `embed_image(preprocess(images))` and `embed_text(tokenise(texts))` give unit-length embeddings
    whose products, times `scale` and plus `bias` if there is one, are the model's logits.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, clip: Any, tokeniser: Any, *, name: str, config: dict[str, Any]) -> None:
        super().__init__()
        self.clip = clip
        self.head: Head | None = None
        self.white_level: float | None = None  # of images of more than eight bits, as in training
        self.frozen_statistics = False  # whether running statistics, as of BatchNorm, are kept in training
        self.text_cache: dict[bytes, Tensor] | None = None  # embeddings by token ids, of a frozen text tower
        self.name = name
        self.config = config  # open_clip's model_cfg, written into exports
        self.preprocess_cfg: dict[str, Any] = open_clip.get_model_preprocess_cfg(clip)
        self.tokeniser = Tokeniser(tokeniser, text_end(clip))
        for key in ("mean", "std"):
            values = torch.tensor(self.preprocess_cfg[key]).view(3, 1, 1)
            self.register_buffer(key, values, persistent=False)

    def forward(self, batch: Batch, needs: frozenset[str] = frozenset({"text"})) -> Embedding:
        features = blocks = tokens = None
        if "features" in needs:
            features, blocks = block_features(self.clip, self.pixels(batch.image))
        if "tokens" in needs:
            features, tokens = self.towers[0].five_taps(self.pixels(batch.image))
        if features is None:
            features = self.encode_image(batch.image)
        return Embedding(
            image=normalize(features, dim=-1),
            text=self._texts(batch) if "text" in needs else None,
            scale=self.scale,
            bias=self.bias,
            scores=self.classify(features) if "scores" in needs else None,
            classes=self.head.weight if "scores" in needs and self.head is not None else None,
            probe=self._probe(batch) if "probe" in needs else None,
            projections=self.projections if "projections" in needs else None,
            features=blocks,
            tokens=tokens,
            anchors=self.forward(batch.anchors) if "anchors" in needs and batch.anchors is not None else None,
        )

    def encode_image(self, image: Num[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Image features, not normalised. Pixels are uint8, or floats that are already normalised."""
        return self.clip.encode_image(self.pixels(image))

    def embed_image(self, image: Num[Tensor, "*n 3 h w"] | Image | Sequence[Image]) -> Float[Tensor, "n d"]:
        """Unit-length embeddings of preprocessed images, or of PIL images, which are preprocessed first."""
        if not isinstance(image, Tensor):
            image = self.preprocess(image)
        if image.ndim != 4:
            raise UserError(
                f"images have the shape n, 3, height, width, and these {', '.join(map(str, image.shape))}: what "
                "`preprocess` returns is a batch already, also of one image"
            )
        return normalize(self.encode_image(image), dim=-1)

    def preprocess(self, images: Image | Sequence[Image]) -> Float[Tensor, "n 3 h w"]:
        """One image or several as normalised pixels of the model's input size, as in training.

        They are turned as their EXIF says, in sRGB, on white where they are transparent.
        """
        config = open_clip.transform.PreprocessCfg(**self.preprocess_cfg)
        transform = open_clip.transform.image_transform_v2(config, is_train=False)
        batch = [images] if isinstance(images, Image) else images
        for image in batch:
            if not isinstance(image, Image):
                raise UserError(
                    f"an image to preprocess is a PIL image, and this is a {type(image).__name__}"
                )
        return torch.stack([transform(seen(image, self.white_level)) for image in batch]).to(self.mean.device)

    def tokenise(self, texts: str | Sequence[str]) -> Int[Tensor, "u l"]:
        """Token ids of one text or several."""
        return self.tokeniser([texts] if isinstance(texts, str) else texts).to(self.mean.device)

    def embed_text(self, tokens: Int[Tensor, "u l"] | str | Sequence[str]) -> Float[Tensor, "u d"]:
        """Unit-length embeddings of token ids, whose rows may be shorter than the context length, or of texts."""
        if not isinstance(tokens, Tensor):
            tokens = self.tokenise(tokens)
        return normalize(encode_text(self.clip, tokens), dim=-1)

    @property
    def scale(self) -> Float[Tensor, ""]:
        """exp(logit_scale): the inverse temperature of the similarities."""
        return self.clip.logit_scale.exp().squeeze()

    @property
    def bias(self) -> Float[Tensor, ""] | None:
        """The logit bias of a model that was trained with the sigmoid loss, such as SigLIP; None for others."""
        bias = getattr(self.clip, "logit_bias", None)
        return None if bias is None else bias.squeeze().clone()  # a copy, because a scene keeps its value

    def probabilities(self, image: Float[Tensor, "n d"], text: Float[Tensor, "u d"]) -> Float[Tensor, "n u"]:
        """Probability of each text for each image, from unit embeddings: of each pair by itself where the model has
        a logit bias, else over all texts."""
        logits = self.scale * image @ text.T
        return logits.softmax(dim=1) if self.bias is None else (logits + self.bias).sigmoid()

    @torch.no_grad()
    def clamp_scale(self, highest: float = MAX_LOG_SCALE) -> None:
        """Clamp the logit scale if it is learned, as CLIP does; a frozen one stays as it is."""
        if self.clip.logit_scale.requires_grad:
            self.clip.logit_scale.clamp_(max=highest)

    @property
    def image_tower(self) -> nn.Module:
        """The image encoder."""
        return self.clip.visual

    @property
    def towers(self) -> tuple[Tower, Tower]:
        """The image and the text tower."""
        return towers_of(self.clip)

    @property
    def projections(self) -> tuple[Float[Tensor, "v d"], Float[Tensor, "t d"]] | None:
        """The matrix with which each tower ends, with the shared embedding as columns; None if one has none."""
        image, text = (tower.projection for tower in self.towers)
        return None if image is None or text is None else (image, text)

    @property
    def text_parameters(self) -> list[nn.Parameter]:
        """All parameters of the text encoder. In the original CLIP they are attributes of the model itself."""
        own = text_tower(self.clip).named_parameters()
        return [parameter for name, parameter in own if not name.startswith(("visual.", "logit_"))]

    @property
    def text_frozen(self) -> bool:
        """Whether text embeddings are constant in training: `train` leaves such a tower in eval mode."""
        return not any(p.requires_grad for p in self.text_parameters)

    def remember_texts(self, enabled: bool = True) -> None:
        """Embed each distinct caption once, if the text tower is frozen and its texts cannot be cut cheaply."""
        costly = not isinstance(self.tokeniser.end, EndOfText)
        self.text_cache = {} if enabled and costly and self.text_frozen else None

    def train(self, mode: bool = True) -> Student:
        """Set train or eval mode; frozen running statistics stay frozen, and so does a frozen text tower."""
        super().train(mode)
        tower = text_tower(self.clip)
        if tower is not self.clip and self.text_frozen:  # no dropout; CLIP's own tower has none
            tower.eval()
        if self.frozen_statistics:
            for layer in running_layers(self).values():
                layer.training = False
        return self

    def pixels(self, image: Num[Tensor, "n 3 h w"]) -> Float[Tensor, "n 3 h w"]:
        """The input of the image tower: uint8 pixels are normalised, floats pass unchanged."""
        if image.is_floating_point():
            return image
        return (image.to(self.mean.dtype) / 255 - self.mean) / self.std

    def _probe(self, batch: Batch) -> Tensor | None:
        if batch.probe is None or batch.probe.is_floating_point():
            return batch.probe
        return self.embed_text(batch.probe)

    def _texts(self, batch: Batch) -> Tensor:
        if batch.text is None:
            raise ValueError("the objective needs text and the batch has none")
        text = self.embed_text(batch.text) if self.text_cache is None else self._remembered(batch.text)
        return text if batch.caption is None else text[batch.caption]

    @torch.no_grad()
    def _remembered(self, tokens: Int[Tensor, "u l"]) -> Float[Tensor, "u d"]:
        """Embeddings from the cache. New texts are embedded one by one, at their own length, so that a caption has
        the same embedding in every batch, and in a run that was resumed."""
        assert self.text_cache is not None
        lengths, rows = self.tokeniser.lengths(tokens).tolist(), []
        for text, length in zip(tokens, lengths, strict=True):
            key = text[:length].cpu().numpy().tobytes()
            row = self.text_cache.get(key)
            if row is None:
                row = self.embed_text(text[None, :length])[0]
                if len(self.text_cache) * row.nbytes < CACHE_BYTES:
                    self.text_cache[key] = row
            rows.append(row)
        return torch.stack(rows)

    def classify(self, features: Float[Tensor, "n d"]) -> Float[Tensor, "n c"]:
        """The head's scores of image features."""
        if self.head is None:
            raise ValueError("the objective needs class scores and the student has no head")
        return self.head(features)


@contextmanager
def evaluating(student: Student) -> Iterator[None]:
    """The model in eval mode, and afterwards in the mode that it had."""
    mode = student.training
    student.eval()
    try:
        yield
    finally:
        student.train(mode)


def block_features(clip: Any, pixels: Float[Tensor, "n 3 h w"]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Image features, and the output of every block: its class token, or its mean over the image."""
    trunk = getattr(clip.visual, "trunk", None)
    # timm's convolutional and hierarchical towers have no class token, and do not know the argument
    extra = trunk is None or "return_prefix_tokens" in signature(trunk.forward_intermediates).parameters
    outputs = clip.visual.forward_intermediates(pixels, output_extra_tokens=extra)
    prefix = outputs.get("image_intermediates_prefix", ())
    if all(tokens.shape[1] for tokens in prefix) and prefix:
        return outputs["image_features"], tuple(tokens[:, 0] for tokens in prefix)
    feature_maps = outputs["image_intermediates"]
    return outputs["image_features"], tuple(block.mean(dim=(2, 3)) for block in feature_maps)


def load(model: str, pretrained: str | None = None, *, seed: int = 0) -> Student:
    """Load a student; `tracer list models` shows the names.

    `model` is an open_clip name, a folder written by `tracer export`, open_clip or transformers, an `hf-hub:`
    name, or a config JSON; `pretrained` is an open_clip tag or a local file (safetensors, or a torch file, which is
    read weights-only). Without it the weights are random, from `seed`.
    """
    from tracer.models.registry import locate

    place = locate(model, pretrained)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        clip = place.build()
    check_finite(dict(clip.named_parameters()), what=f"the weights of {model}")
    return Student(clip, place.tokeniser(), name=place.name, config=place.config)


def initialise_from(student: Student, weights: Weights) -> None:
    """Load a run's weights, head included, into a student of the same architecture."""
    if "head.weight" in weights:
        scale = 1.0 if "head.scale" in weights else None
        student.head = Head(torch.zeros_like(weights["head.weight"]), "head.bias" in weights, scale)
    check_fit(weights, student.state_dict(), what="these weights", owner=student.name)
    check_finite(weights, what=f"these weights of {student.name}")
    student.load_state_dict(weights)
    student.text_cache = None
