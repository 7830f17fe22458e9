"""A teacher for the `Trainer` of transformers (`pip install 'tracer-clip[hf]'`).

teacher = TeacherCallback(WMA(Beta(0.5)))

class Distilled(Trainer):
    def compute_loss(self, model, inputs, **_):
        outputs = model(**inputs)
        return outputs.loss + my_distillation(outputs, teacher.shadow(**inputs))

Distilled(model, arguments, train_dataset=data, callbacks=[teacher]).train()
teacher.shadow.model          # the average of all iterates
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tracer.core.errors import UserError
from tracer.core.shadow import Shadow
from tracer.core.teachers import Buffers, Teacher
from tracer.storage.atomic import write_file, write_json
from tracer.storage.safetensors_io import read_weights, write_weights

WEIGHTS, COUNTERS = "teacher.safetensors", "teacher.json"  # in each checkpoint folder of the Trainer


class TeacherCallback(TrainerCallback):
    """Averages the Trainer's model by a teacher policy; `shadow` is the teacher from the start of training on.

    Every checkpoint also holds the teacher, and a resumed training continues it exactly. `resume_from` is the
    checkpoint folder of a resumed training, needed only where it lies outside the Trainer's output_dir.
    """

    shadow: Shadow

    def __init__(
        self, policy: Teacher, *, buffers: Buffers = "copy", resume_from: str | Path | None = None
    ) -> None:
        self.policy = policy
        self.buffers: Buffers = buffers
        self.resume_from = None if resume_from is None else Path(resume_from)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **objects: Any
    ) -> None:
        """Create the teacher; in a resumed training, from its checkpoint."""
        model: nn.Module = objects["model"]
        self.shadow = Shadow(model, self.policy, steps=state.max_steps, buffers=self.buffers)
        if state.global_step:
            self._restore(self.resume_from or _checkpoint(args, state))

    def on_step_end(self, *_: Any, **objects: Any) -> None:
        """Update the teacher after an optimiser step."""
        self.shadow.follow(objects["model"])

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Write the teacher into the checkpoint that the Trainer has just written."""
        if state.is_world_process_zero:
            teacher, folder = self.shadow.state_dict(), _checkpoint(args, state)
            # Cloned, because safetensors refuses parameters that share memory, such as tied embeddings.
            weights = {name: tensor.clone() for name, tensor in teacher.pop("model").items()}
            write_file(folder / WEIGHTS, lambda path: write_weights(path, weights))
            write_json(folder / COUNTERS, teacher)

    def _restore(self, folder: Path) -> None:
        if not (folder / COUNTERS).exists():
            raise UserError(
                f"{folder} holds no teacher: give resume_from=, the folder of a checkpoint that was saved "
                "with this callback"
            )
        teacher = json.loads((folder / COUNTERS).read_text(encoding="utf-8"))
        self.shadow.load_state_dict({**teacher, "model": read_weights(folder / WEIGHTS)})


def _checkpoint(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir or ".") / f"checkpoint-{state.global_step}"
