"""The list of methods, for `tracer list methods` and docs/methods.md."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from tracer.core.markdown import markdown_table
from tracer.core.regularizers import REGULARIZERS
from tracer.methods.base import Option, method, methods, options, summary
from tracer.methods.cost import cost


class Entry(NamedTuple):
    """One row of the list."""

    name: str
    title: str
    year: str
    paper: str
    forwards: str
    copies: str
    matter: str
    summary: str


COLUMNS = (
    "name",
    "method",
    "year",
    "paper",
    "extra forwards",
    "extra copies",
    "main settings",
    "what it does",
)


# What to try first: a method, and the data that it is for.
RECOMMENDED = {
    "lipsum": "class labels, and a model that knows the classes at least in part",
    "lpft": "class labels, and a model that knows little of them",
    "tracer": "captions, or whenever text and images must stay comparable",
}
RECOMMENDATION = "\n".join(
    [
        "Start with",
        *(f"  {name:9} {purpose}" for name, purpose in RECOMMENDED.items()),
        "Evidence: EmojiShift (docs/emojishift.md), with a CLIP of 5.8 M parameters at 32",
        "pixels; at the size of ViT-B-16 nobody has compared them here. Learning rate and",
        "`tracer merge --wise` often matter more than the method.",
    ]
)


CHOICE = """\
## Which to use

`tracer fit` ([Fit](fit.md)) chooses method, rate, strength and mixture by your own data. Without a search
([Which method, and how strong](which-method.md)), start with"""
UNSEARCHED = """\
then `tracer merge RUN --wise 0:1:0.1`, which costs nothing. Of rates that held-out images cannot tell apart take the
lowest: three times as high a one cost TRACER half of what it kept, and taught it nothing more. `steady`, our variant,
did not hold on fresh data. This is from [EmojiShift](emojishift.md), with a CLIP of 5.8 M parameters.

[PhotoShift](photoshift.md), with pretrained towers, photographs and drawings (five tasks, two seeds), agrees: at the
settings that validation chose, `lipsum` and `tracer` kept most, 32 and 30 % where the model had 40 before, FLYP kept 9
and direct finetuning 15; the price was 3 to 5 points of the task. Of TRACER's four terms the feature distance does the
keeping: alone it keeps as much as all four, and without it 19 points less. With the time to try several rates, `ft` and
`merge` do as well: over all rates, strengths and mixtures no teacher had a larger area, an EMA teacher with a short
memory came nearest, and FLYP had a smaller one. Nobody has compared them here at the size of ViT-B-16.

Where training is very short (20 steps of a small model, eight tasks, two seeds: [Fit](fit.md)), a linear probe, `lp`,
was as good as a search: accuracy × share kept differed by 0.9 ± 6.2 points, and was 26 to 42 points lower with every
method that trains a tower at 3e-4. It forgets nothing, except on data with the classes of the task, on which its head
answers. With pretrained towers (one task, one seed) finetuning was 10 points better, and `ft` at 1e-4 kept all."""


def entries() -> list[Entry]:
    """Every method, by name."""
    return [_entry(name) for name in methods()]


def page() -> str:
    """The text of docs/methods.md."""
    parts = [
        INTRODUCTION,
        _table(),
        _choice(),
        SIGMOID_SECTION,
        REGULARIZER_SECTION,
        *(_regularizer(name) for name in REGULARIZERS),
        "\n## Options\n",
    ]
    return "\n".join([*parts, *(_section(name) for name in methods())])


def _choice() -> str:
    """Which method to use: by a search, or by what has been measured."""
    lines = [f"- `{name}`: {purpose};" for name, purpose in RECOMMENDED.items()]
    return "\n".join(["", CHOICE, "", *lines, "", UNSEARCHED])


def _entry(name: str) -> Entry:
    each = method(name)
    forwards, copies = cost(each)
    return Entry(
        name,
        each.title,
        str(each.year or ""),
        each.paper,
        ", ".join(forwards) or "none",
        str(copies),
        ", ".join(each.matter),
        summary(name),
    )


def _table() -> str:
    rows = (entry._replace(paper=_link(entry.paper)) for entry in entries())
    return markdown_table(COLUMNS, rows, align_right=False)


def _link(paper: str) -> str:
    kind, _, key = paper.partition(":")
    sites = {"arXiv": "https://arxiv.org/abs/", "openreview": "https://openreview.net/forum?id=", "ours": ""}
    return f"[{paper}]({sites[kind]}{key})" if kind in sites else paper


def _regularizer(name: str) -> str:
    text = (inspect.getdoc(REGULARIZERS[name]) or "").replace("\n\n", "\n").replace("\n", " ")
    return f"- `{name}`: {text}"


def _section(name: str) -> str:
    """A method's docstring, with its arguments as a list."""
    text = (inspect.getdoc(methods()[name]) or "").partition("\nArgs:")[0].strip()
    lines = [f"### {name}\n", text.replace("|", r"\|"), ""]
    return "\n".join([*lines, *(_option(option) for option in options(name)), ""])


def _option(option: Option) -> str:
    default = repr(option.default) if isinstance(option.default, str) else f"{option.default}"
    return f"- `--{option.name.replace('_', '-')}` (default {default}): {option.help}"


INTRODUCTION = """\
# Methods

This page is generated: `python -m tracer.methods > docs/methods.md`.

Each method is one file in `tracer/methods`. It chooses the loss, the teacher, the trainable parameters, the
regularizer, and the weights that are kept. The training loop, the data and the evaluation are the same for all.
Costs are relative to plain finetuning; one more forward is about a third of a training step.
"""

SIGMOID_SECTION = """
## Models with a logit bias: the sigmoid loss

SigLIP, SigLIP 2 and NLLB-SigLIP were not pretrained with a softmax over the batch. They give every pair of image i and
text j its own probability σ(l_ij), l_ij = s ⟨u_i, v_j⟩ + b, with a learned bias b. The model decides: where it has
`logit_bias`, the terms below take their sigmoid form, and b is trained, averaged by the teacher, merged and exported
like every other weight. No flag is needed.

The derivation has one rule. A row of the softmax form is one categorical variable, "which text belongs to image i"; in
the sigmoid form it is n independent Bernoulli variables, "does text j belong to image i". The negative log-likelihood,
cross-entropy and KL of independent variables are sums over them, so that Σ_j over a row takes the place of the softmax,
and everything is divided by the number n of images, as in the SigLIP paper. With ζ(x) = log(1 + eˣ),
log σ(x) = x − ζ(x) and log(1 − σ(x)) = −ζ(x). S is the student, T the teacher, each with its own scale and bias:
l^S = s_S U_S V_Sᵀ + b_S and l^T = s_T U_T V_Tᵀ + b_T.

| term | softmax form | sigmoid form |
| --- | --- | --- |
| contrastive | ½ (CE(rows, Y) + CE(columns, Y)) | (1/n) Σ_ij ζ(−z_ij l_ij^S), z_ij = 1 where Y_ij > 0, else −1 |
| FD | mean_i ‖u_i^T − u_i^S‖² + ‖v_i^T − v_i^S‖² | the same |
| CRD | KL of rows + KL of columns | (2/n) Σ_ij KL_ij, KL_ij = σ(t)(t − l) + ζ(l) − ζ(t) with t = l_ij^T, l = l_ij^S |
| ICL | ½ (CE(s_S U_S V_Tᵀ, Y) + CE(s_S V_S U_Tᵀ, Y)) | (1/2n) Σ_ij ζ(−z_ij m_ij) + ζ(−z_ij m'_ij), m = s_S U_S V_Tᵀ + b_S, m' = s_S V_S U_Tᵀ + b_S |
| CrossKD | ½ (KL(T rows, s_S U_S V_Tᵀ) + KL(T columns, s_S V_S U_Tᵀ)) | (1/2n) Σ_ij KL(σ(l_ij^T) ‖ σ(m_ij)) + KL(σ(l_ji^T) ‖ σ(m'_ij)) |
| soft pairs (CaRot) | H of rows + H of columns | (2/n) Σ_ij ζ(l_ij^S) − σ(l_ij^T) l_ij^S |
| anchors (ARF) | as contrastive, on the anchors | as contrastive, on the anchors |

Sums of rows and columns run over the same pairs, which is why CRD and soft pairs have a factor 2 and their coefficients
keep their meaning. With `--targets class` every pair of equal label is a positive of its own; the softmax form divides
one unit of probability among them instead. The gradient of CRD at a pair is 2/n (σ(l^S) − σ(l^T)): it vanishes
only where the two probabilities agree, so that it also holds the bias in place.

Terms over alternatives of which exactly one holds stay in their softmax form: classes (cross-entropy, KD, CLIPood),
contexts (CAR-FT) and nuisance captions (StarFT). That is exact: given that exactly one of k independent variables is
true, the probability that it is the c-th is softmax(l)_c, in which b cancels. For the same reason zero-shot class
probabilities are the softmax of the logits; the sigmoid of a logit is the probability of that class by itself, whose
calibration `tracer eval` reports as `sigmoid_ece` ([Calibration](calibration.md)).

A loss over pairs is a sum, so each process adds up the pairs of its own images, in blocks of 1024 rows that are computed
again in the backward pass: no matrix of all pairs is stored. Losses and gradients are those of one process.
"""  # noqa: E501

REGULARIZER_SECTION = """
## Regularizers

`--regularizer` keeps the weights close to the pretrained ones; it combines with any method.
"""
