"""A teacher in a loop of Hugging Face accelerate, saved and resumed with its checkpoints.

pip install tracer-clip accelerate
accelerate launch examples/accelerate_teacher.py --steps 20 --stop-at 12  # or: python examples/accelerate_teacher.py
accelerate launch examples/accelerate_teacher.py --steps 20 --resume      # goes on from the last checkpoint

Model and data are stand-ins: put your own in their place. Each process averages its own copy of the weights; they
are equal, because the optimiser steps are.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax
from torch.utils.data import DataLoader, TensorDataset

from tracer import WMA, Beta, Shadow


def train(steps: int, folder: Path, resume: bool = False, stop_at: int | None = None) -> Shadow:
    """Train up to step `stop_at` of `steps`, and return the teacher."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
    images, labels = torch.randn(8 * steps, 16), torch.randint(4, (8 * steps,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=8)

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    shadow = Shadow(
        model.to(accelerator.device), WMA(Beta(0.5)), steps=steps
    )  # before prepare, which may wrap it
    model, optimiser, loader = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=1e-2), loader
    )
    accelerator.register_for_checkpointing(shadow)  # state_dict and load_state_dict are all it needs
    if resume:
        accelerator.load_state(str(folder))

    for x, y in accelerator.skip_first_batches(loader, shadow.step):
        student = log_softmax(model(x), dim=1)
        teacher = log_softmax(shadow(x), dim=1)
        loss = cross_entropy(student, y) + kl_div(student, teacher, log_target=True, reduction="batchmean")
        accelerator.backward(loss)
        optimiser.step()
        optimiser.zero_grad()
        shadow.follow(accelerator.unwrap_model(model))
        if shadow.step in (stop_at, steps):
            accelerator.save_state(str(folder))
            accelerator.print(f"loss {float(loss.detach()):.3f}")
            break
    accelerator.print(f"step {shadow.step} of {steps}, saved in {folder}")
    return shadow


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--stop-at", type=int, help="save and stop after this step")
    parser.add_argument("--folder", type=Path, default=Path("runs/accelerate"))
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    train(given.steps, given.folder, given.resume, given.stop_at)
