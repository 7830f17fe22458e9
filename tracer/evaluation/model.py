"""A model to use: images in, classes and their probabilities out, computed as the evaluation computes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from multiprocessing import current_process
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from jaxtyping import Float

from tracer.core.errors import UserError
from tracer.data.images import images_of
from tracer.evaluation.predict import Scorer
from tracer.models.prompts import templates as prompts
from tracer.models.student import Student
from tracer.models.task import Task
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World

NO_TASK = Task()


class Prediction(NamedTuple):
    """What a model says of one image."""

    image: str  # its path or id, or its number
    name: str  # of the class
    probability: float
    top: tuple[tuple[str, float], ...]  # the most probable classes, this one first

    def __str__(self) -> str:
        others = ", ".join(f"{name} {share:.1%}" for name, share in self.top[1:])
        return f"{self.image}: {self.name} {self.probability:.1%}" + (f" ({others})" if others else "")


class Predictions(Sequence[Prediction]):
    """A prediction for each image. Prints a line each; as an array it is the names, which scikit-learn compares."""

    def __init__(
        self, images: Sequence[str], classes: Sequence[str], probabilities: Float[np.ndarray, "n k"], top: int
    ) -> None:
        self.images, self.classes, self.probabilities = tuple(images), tuple(classes), probabilities
        self._top = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]

    @property
    def names(self) -> np.ndarray:
        """The class of each image."""
        return np.array(self.classes)[self._top[:, 0]]

    def __len__(self) -> int:
        return len(self.images)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Prediction]: ...
    def __getitem__(self, index: int | slice) -> Prediction | Sequence[Prediction]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        top = tuple((self.classes[k], float(self.probabilities[index, k])) for k in self._top[index])
        return Prediction(self.images[index], *top[0], top)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy
        return np.asarray(self.names, dtype)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


class Model:
    """A model that answers with what was chosen for it, as `tracer eval` measures it.

    By default it names the classes of its `task`: with its trained classifier if it has one, else by the prompts that
    it was trained with, and with the temperature that was fitted on held-out images, if any. It is in eval mode.
    """

    def __init__(self, student: Student, task: Task = NO_TASK, device: str = "cpu") -> None:
        self.task = task
        world = World(device, "fp32")
        world.place(student)
        workers = 0 if current_process().daemon else None  # a worker of a loader may start no others
        self._scorer = Scorer(student.eval().requires_grad_(False), world, task.classes, workers)

    @property
    def student(self) -> Student:
        """The module: `student.clip` is open_clip's, `student.head` a trained classifier or None."""
        return self._scorer.student

    @property
    def classes_(self) -> np.ndarray:
        """The names of the classes, in the order of `predict_proba`; none if it was not finetuned to name any."""
        return np.array(self.task.classes, dtype=str)

    def predict(
        self, images: Any, classes: Sequence[str] | None = None, *, templates: Any = None, top: int = 5
    ) -> Predictions:
        """The class of each image, with its probability and those of the `top` most probable classes.

        Args:
            images: a path, a folder, a PIL image, an array, a tensor, a list of these, or a data set; see `images_of`.
            classes: words to choose from, instead of the model's own classes. Its trained classifier answers if they
                are among its classes, else its two towers.
            templates: prompts for the classes: openai, simple, name, a file or a list; a trained classifier needs none.
            top: how many classes each answer lists.
        """
        if top < 1:
            raise UserError(f"top={top}: an answer lists at least one class")
        names, probabilities, own = self._answer(images, classes, templates)
        return Predictions(names, own, probabilities, top)

    def predict_proba(
        self, images: Any, classes: Sequence[str] | None = None, *, templates: Any = None
    ) -> Float[np.ndarray, "n k"]:
        """The probability of each class, in the order of `classes`, by default of `classes_`; a row sums to 1."""
        return self._answer(images, classes, templates)[1]

    def embed(self, images: Any) -> Float[np.ndarray, "n d"]:
        """Unit-length embeddings of images in any of the forms that `predict` takes."""
        examples = images_of(images)
        if not len(examples):
            return np.zeros((0, self.student.config["embed_dim"]), np.float32)
        with torch.no_grad():
            return self._scorer.embed(examples).unit.float().cpu().numpy()

    def embed_text(self, texts: str | Sequence[str]) -> Float[np.ndarray, "u d"]:
        """Unit-length embeddings of texts: `embed(images) @ embed_text(texts).T` are their similarities."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        return zero_shot(self.student, texts, ("{}",)).cpu().numpy()

    def _answer(
        self, images: Any, classes: Sequence[str] | None, templates: Any
    ) -> tuple[Sequence[str], Float[np.ndarray, "n k"], tuple[str, ...]]:
        """The names of the images, the probabilities of each class, and the classes."""
        names = self.names(classes)
        head = self.student.head is not None and set(names) <= set(self.task.classes)
        if head and templates is not None:
            raise UserError("a trained classifier needs no prompts: leave out templates=")
        scored = self.task.classes if head else names
        asked_in = prompts(templates) if templates is not None else self.task.templates_for(names)
        examples = images_of(images)
        if not len(examples):
            return (), np.zeros((0, len(names))), names
        with torch.no_grad():
            logits = self._scorer.predict(examples, asked_in or prompts("openai"), scored).logits
        if templates is None and self.task.temperature is not None and set(names) <= set(self.task.classes):
            logits = logits / self.task.temperature
        place = {name: column for column, name in enumerate(scored)}
        columns = [place[name] for name in names]
        return examples.ids, logits[:, columns].double().softmax(dim=1).numpy(), names

    def names(self, classes: Sequence[str] | None = None) -> tuple[str, ...]:
        """The classes to choose from: these, or by default its own. Raises UserError if that is no choice."""
        if isinstance(classes, str):
            raise UserError(f"classes={classes!r}: give a list of names")
        names = self.task.classes if classes is None else tuple(classes)
        if not names and classes is None:
            raise UserError(f"{self.student.name} was not finetuned to name classes: give classes=[…]")
        if len(names) < 2:
            raise UserError(f"a choice is between at least two classes, and there are {len(names)}")
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise UserError(f"the class {twice!r} is given twice")
        return names

    def __repr__(self) -> str:
        shown = ", ".join((*self.task.classes[:3], *("…",) * (len(self.task.classes) > 3)))
        by = "a trained classifier" if self.student.head is not None else "class names"
        answers = f", {len(self.task.classes)} classes ({shown}) by {by}" if self.task.classes else ""
        return f"Model({self.student.name}{answers})"
