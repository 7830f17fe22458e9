"""The teacher in the training loops of other libraries equals a plain loop's, and resumes exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tracer import WMA, Beta, Shadow, UserError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, whose releases bring their own

STEPS, BATCH = 6, 4
POLICY = WMA(Beta(0.5))


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))


def points() -> Tensor:
    """One batch, so that an epoch is a step: where data begin after a resume is the library's matter."""
    return torch.randn(BATCH, 3, generator=torch.Generator().manual_seed(2))


def same(found: nn.Module, expected: nn.Module) -> None:
    pairs = zip(found.state_dict().values(), expected.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def plain() -> Shadow:
    """The teacher of a plain loop of SGD, whose loss has the teacher in it."""
    model = network().train()
    shadow = Shadow(model, POLICY, steps=STEPS)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in [points()] * STEPS:
        optimiser.zero_grad()
        loss(model(batch), shadow(batch)).backward()
        optimiser.step()
        shadow.follow(model)
    return shadow


def loss(outputs: Tensor, teacher: Tensor) -> Tensor:
    return (outputs - 1).square().mean() + (outputs - teacher).square().mean()


# Hugging Face


def huggingface(folder: Path, steps: int, resume: bool | str = False, **options: Any) -> Any:
    transformers = pytest.importorskip("transformers", reason="pip install 'tracer-clip[hf]'")
    pytest.importorskip("accelerate", reason="pip install 'tracer-clip[hf]'")
    from tracer.integrations.huggingface import TeacherCallback

    callback = TeacherCallback(POLICY, **options)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = network()

        def forward(self, x: Tensor) -> Tensor:
            return self.layers(x)

    class Distilled(transformers.Trainer):
        def compute_loss(self, model: nn.Module, inputs: Any, *_: Any, **__: Any) -> Tensor:
            return loss(model(**inputs), callback.shadow(**inputs))

        def _get_train_sampler(self, *_: Any) -> Any:
            return torch.utils.data.SequentialSampler(self.train_dataset)

    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = state.global_step == steps

    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=0.1,
        lr_scheduler_type="constant",
        optim="sgd",
        max_grad_norm=0.0,
        save_steps=2,
        logging_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    rows = [{"x": row} for row in points()]
    trainer = Distilled(Model(), arguments, train_dataset=rows, callbacks=[callback, Stop()])
    trainer.train(resume_from_checkpoint=resume or None)
    return callback


def test_the_trainer_of_transformers_gives_the_teacher_of_a_plain_loop(plain: Shadow, tmp_path: Path) -> None:
    teacher = huggingface(tmp_path, STEPS).shadow
    same(teacher.model.layers, plain.model)
    assert teacher.state_dict()["counters"] == plain.state_dict()["counters"]


def test_the_trainer_of_transformers_resumes_exactly(plain: Shadow, tmp_path: Path) -> None:
    huggingface(tmp_path / "run", 4)
    same(huggingface(tmp_path / "run", STEPS, resume=True).shadow.model.layers, plain.model)
    moved = (tmp_path / "run" / "checkpoint-2").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="holds no teacher"):
        huggingface(tmp_path / "run", STEPS, resume=str(moved))
    found = huggingface(tmp_path / "run", STEPS, resume=str(moved), resume_from=moved).shadow
    same(found.model.layers, plain.model)


# Lightning


def lightning(folder: Path, stop_at: int, resume: str | None = None, **options: Any) -> Any:
    package = pytest.importorskip("pytorch_lightning", reason="pip install 'tracer-clip[lightning]'")
    from tracer.integrations.lightning import TeacherCallback

    callback = TeacherCallback(POLICY, **options)

    class Module(package.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = network()

        def training_step(self, batch: Tensor, index: int) -> Tensor:
            if self.global_step == stop_at:
                raise ConnectionError("interrupted")
            return loss(self.model(batch), callback.shadow(batch))

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = package.Trainer(
        max_steps=STEPS,
        default_root_dir=folder,
        callbacks=[callback, package.callbacks.ModelCheckpoint(folder, every_n_epochs=1, save_top_k=-1)],
        accelerator="cpu",
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = torch.utils.data.DataLoader(points(), batch_size=BATCH)  # pyright: ignore[reportArgumentType]
    trainer.fit(Module(), loader, ckpt_path=resume)
    return callback


def test_lightning_gives_the_teacher_of_a_plain_loop(plain: Shadow, tmp_path: Path) -> None:
    same(lightning(tmp_path, -1).shadow.model, plain.model)
    with pytest.raises(UserError, match="has no module 'encoder'"):
        lightning(tmp_path, -1, module="encoder")


def test_lightning_resumes_exactly(plain: Shadow, tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        lightning(tmp_path, 5)
    checkpoint = next(tmp_path.glob("*step=4.ckpt"))
    same(lightning(tmp_path, -1, resume=str(checkpoint)).shadow.model, plain.model)
