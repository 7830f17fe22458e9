"""A teacher for the `Trainer` of Lightning (`pip install 'tracer-clip[lightning]'`).

class Module(LightningModule):                       # with self.model, the model to average
    def training_step(self, batch, index):
        return my_loss(self.model(batch), self.teacher.shadow(batch))

module.teacher = TeacherCallback(WMA(Beta(0.5)))
Trainer(max_steps=1000, callbacks=[module.teacher]).fit(module, loader)
"""

from __future__ import annotations

from typing import Any

from pytorch_lightning import Callback, LightningModule, Trainer
from torch import nn

from tracer.core.errors import UserError
from tracer.core.shadow import Shadow
from tracer.core.teachers import Buffers, Teacher


class TeacherCallback(Callback):
    """Averages a module by a teacher policy; `shadow` is the teacher from the start of training on.

    `module` names the attribute of the LightningModule that is averaged. The teacher is part of every checkpoint,
    and a resumed training continues it exactly. Training needs one optimiser and a known number of steps.
    """

    shadow: Shadow

    def __init__(self, policy: Teacher, *, module: str = "model", buffers: Buffers = "copy") -> None:
        self.policy, self.module = policy, module
        self.buffers: Buffers = buffers
        self._restored: dict[str, Any] | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Create the teacher; in a resumed training, from its checkpoint."""
        steps = trainer.estimated_stepping_batches
        if not isinstance(steps, int):
            raise UserError(
                "a teacher needs the number of steps of the training: give Trainer(max_steps=...)"
            )
        self.shadow = Shadow(self._student(pl_module), self.policy, steps=steps, buffers=self.buffers)
        if self._restored is not None:
            self.shadow.load_state_dict(self._restored)
            self._restored = None
        elif trainer.global_step:
            raise UserError(
                "this checkpoint holds no teacher: resume from one that was saved with this callback"
            )

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any, **__: Any) -> None:
        """Update the teacher, if the batch ended in an optimiser step (gradients may be accumulated)."""
        if trainer.global_step > self.shadow.step:
            self.shadow.follow(self._student(pl_module))

    def state_dict(self) -> dict[str, Any]:
        """The teacher, for the checkpoint."""
        return self.shadow.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the teacher of a checkpoint until training starts, when the model exists."""
        self._restored = state_dict

    def _student(self, pl_module: LightningModule) -> nn.Module:
        try:
            return pl_module.get_submodule(self.module)
        except AttributeError:
            raise UserError(
                f"{type(pl_module).__name__} has no module {self.module!r}: name the one to average, "
                "TeacherCallback(policy, module=...)"
            ) from None
