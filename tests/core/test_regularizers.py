"""Regularizers against their definitions in NumPy float64, over several steps of an optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from closeness import same
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.projection import norms, project
from tracer.core.regularizers import FTP, L2SP, SPD, Regularizer, regularizer

SHAPES = {
    "clip.matrix": (3, 4),
    "clip.kernel": (2, 3, 2, 2),
    "clip.vector": (5,),
    "clip.scale": (),
    "head.weight": (2, 4),
}


class Path:
    """Parameters that follow given gradients by plain gradient descent, under a regularizer."""

    def __init__(self, policy: Regularizer | None, lr: float = 0.1) -> None:
        rng = np.random.default_rng(0)
        self.start = {name: torch.from_numpy(np.asarray(rng.normal(size=s))) for name, s in SHAPES.items()}
        self.now = {name: value.clone().requires_grad_(True) for name, value in self.start.items()}
        self.hold = policy.attach(self.now, self.start) if policy else None
        self.lr, self.rng = lr, np.random.default_rng(1)

    def gradients(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(self.rng.normal(size=shape)) for name, shape in SHAPES.items()}

    @torch.no_grad()
    def step(self) -> dict[str, np.ndarray]:
        given = self.gradients()
        for name, value in self.now.items():
            value.grad = torch.from_numpy(given[name].copy())
        if self.hold:
            self.hold.pull()
        for value in self.now.values():
            assert value.grad is not None
            value.sub_(value.grad, alpha=self.lr)
        if self.hold:
            self.hold.clamp(self.lr)
        return given

    def arrays(self, which: dict[str, Tensor]) -> dict[str, np.ndarray]:
        return {name: value.detach().numpy().copy() for name, value in which.items()}


def row_norms(change: np.ndarray) -> np.ndarray:
    rows = change.reshape(len(change), -1) if change.ndim > 1 else change.reshape(1, -1)
    return np.abs(rows).sum(axis=1) + 1e-8


def spread(ratio: np.ndarray, like: np.ndarray) -> np.ndarray:
    return ratio.reshape(-1, *[1] * (like.ndim - 1)) if like.ndim > 1 else ratio.reshape(())


def test_ftp_over_six_steps() -> None:
    path = Path(FTP(keenness=0.5))
    start, theta = path.arrays(path.start), path.arrays(path.start)
    held = [name for name in SHAPES if not name.startswith("head.")]
    gamma, mean, square = (dict.fromkeys(held, value) for value in (1e-8, 0.0, 0.0))
    change: dict[str, np.ndarray] = {}
    for t in range(1, 7):
        gradient = path.step()
        for name in SHAPES:
            g, stepped = gradient[name], theta[name] - 0.1 * gradient[name]
            if name not in held:
                theta[name] = stepped
                continue
            if t > 1:  # Adam's step is t, as in the authors' code: at t = 1 its gradient is 0
                products = g * change[name]
                rows = products.reshape(len(products), -1) if g.ndim > 1 else products.reshape(1, -1)
                slope = float((rows.sum(axis=1) / row_norms(change[name])).sum())
                slope *= 0.5 if slope > 0 else 1.0
                mean[name] = 0.9 * mean[name] + 0.1 * slope
                square[name] = 0.999 * square[name] + 0.001 * slope**2
                m, v = mean[name] / (1 - 0.9**t), square[name] / (1 - 0.999**t)
                gamma[name] -= 1e-2 * m / (np.sqrt(v) + 1e-8)
            change[name] = stepped - start[name]
            far = row_norms(change[name])
            gamma[name] = float(np.clip(gamma[name], 1e-8, far.max()))
            ratio = np.clip(gamma[name] / far, 0, 1)
            theta[name] = start[name] + spread(ratio, stepped) * change[name]
        for name, value in path.now.items():
            same(value, theta[name], sums=6 * 20 * value.numel())


def test_the_radii_of_ftp_are_trained_by_torchs_adam() -> None:
    """20 steps against torch.optim.Adam in float64 on the radii alone, whose first gradient is 0."""
    path = Path(FTP())
    assert path.hold is not None
    names = [name for name in SHAPES if not name.startswith("head.")]
    radii = [torch.tensor(1e-8, dtype=torch.float64, requires_grad=True) for _ in names]
    adam = torch.optim.Adam(radii, lr=1e-2)
    before = {name: torch.zeros_like(path.start[name]) for name in names}
    largest = 0.0
    for _ in range(20):
        free = {name: path.now[name].detach().clone() for name in names}
        gradients = path.step()
        for name, radius in zip(names, radii, strict=True):
            rows = before[name].flatten(1) if before[name].ndim > 1 else before[name].reshape(1, -1)
            gradient = torch.from_numpy(gradients[name]).reshape(rows.shape)
            radius.grad = ((gradient * rows).sum(dim=1) / (rows.abs().sum(dim=1) + 1e-8)).sum()
            before[name] = free[name] - 0.1 * torch.from_numpy(gradients[name]) - path.start[name]
        adam.step()
        for name, radius in zip(names, radii, strict=True):
            radius.data.clamp_(1e-8, float(row_norms(before[name].numpy()).max()))
        expected = [float(radius.detach()) for radius in radii]
        same(path.hold.state_dict()["radii"], expected, sums=20 * 100)
        largest = max(largest, *expected)
    assert largest > 0.01  # some radius has grown, so that the comparison says something


def test_ftp_resumes_a_checkpoint_of_version_01() -> None:
    """It counted the updates of the radius, one less than the steps."""
    path = Path(FTP())
    assert path.hold is not None
    for steps in range(3):
        state = path.hold.state_dict()
        old = {key: value for key, value in state.items() if key != "steps"}
        old["updates"] = torch.tensor(max(0, steps - 1))
        resumed = Path(FTP())
        assert resumed.hold is not None
        resumed.hold.load_state_dict(old)
        assert int(resumed.hold.state_dict()["steps"]) == int(state["steps"]) == steps
        path.step()


def test_ftp_begins_at_the_pretrained_weights() -> None:
    path = Path(FTP())
    path.step()
    for name in SHAPES:
        if not name.startswith("head."):
            torch.testing.assert_close(path.now[name].detach(), path.start[name], atol=1e-7, rtol=0)


@pytest.mark.parametrize("policy", [FTP(radius=float("inf")), SPD(0.0), L2SP(0.0), L2SP(0.0, "decoupled")])
def test_a_tether_that_holds_nothing_changes_no_bit(policy: Regularizer) -> None:
    free, held = Path(None), Path(policy)
    for _ in range(5):
        free.step(), held.step()
    assert all(torch.equal(free.now[name], held.now[name]) for name in SHAPES)


def test_ftp_with_radius_zero_never_leaves() -> None:
    path = Path(FTP(radius=0.0, head=True))
    for _ in range(3):
        path.step()
    assert all(torch.equal(path.now[name].detach(), path.start[name]) for name in SHAPES)


def test_spd_over_six_steps() -> None:
    path = Path(SPD(0.7))
    start, theta = path.arrays(path.start), path.arrays(path.start)
    decayed = 0
    for _ in range(6):
        gradient = path.step()
        for name in SHAPES:
            before, stepped = theta[name] - start[name], theta[name] - 0.1 * gradient[name]
            after = stepped - start[name]
            theta[name] = stepped
            if not name.startswith("head.") and (gradient[name] * before).sum() > 0:
                far = np.linalg.norm(after)
                share = np.clip((far - np.linalg.norm(before)) / far, 0, 1)
                decayed += share > 0
                theta[name] = stepped - 0.7 * share * after
        for name, value in path.now.items():
            same(value, theta[name], sums=6 * value.numel())
    assert decayed > 0


def test_l2sp_in_both_forms() -> None:
    for form in ("loss", "decoupled"):
        path = Path(L2SP(0.3, form))  # type: ignore[arg-type]
        start, theta = path.arrays(path.start), path.arrays(path.start)
        for _ in range(3):
            gradient = path.step()
            for name in SHAPES:
                gap = theta[name] - start[name]
                if form == "loss":
                    theta[name] = theta[name] - 0.1 * (gradient[name] + 0.3 * gap)
                else:
                    theta[name] = theta[name] - 0.1 * gradient[name]
                    theta[name] -= 0.1 * 0.3 * (theta[name] - start[name])
        for name, value in path.now.items():
            same(value, theta[name], sums=6 * value.numel())


def test_l2sp_may_leave_the_head_free() -> None:
    free, held = Path(None), Path(L2SP(0.3, head=False))
    for _ in range(3):
        free.step(), held.step()
    assert torch.equal(free.now["head.weight"], held.now["head.weight"])
    assert not torch.equal(free.now["clip.matrix"], held.now["clip.matrix"])


@pytest.mark.parametrize("policy", [FTP(), SPD(), L2SP()])
def test_a_hold_resumes_bit_for_bit(policy: Regularizer) -> None:
    whole, stopped = Path(policy), Path(policy)
    for _ in range(4):
        whole.step(), stopped.step()
    assert stopped.hold is not None
    saved = {key: value.clone() for key, value in stopped.hold.state_dict().items()}
    resumed = Path(policy)
    assert resumed.hold is not None
    resumed.hold.load_state_dict(saved)
    resumed.rng = stopped.rng
    for name, value in stopped.now.items():
        resumed.now[name].data.copy_(value.data)
    for _ in range(3):
        whole.step(), resumed.step()
    assert all(torch.equal(whole.now[name], resumed.now[name]) for name in SHAPES)


def test_projection_onto_a_ball() -> None:
    rng = np.random.default_rng(3)
    anchor, value = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    for radius in (0.0, 0.5, 1.5, 1e9):
        change = value - anchor
        rows = np.clip(radius / (np.abs(change).sum(axis=1) + 1e-8), 0, 1)
        whole = min(1.0, radius / (np.sqrt((change**2).sum()) + 1e-8))
        for norm, ratio in (("rows", rows[:, None]), ("whole", whole)):
            found = project(torch.from_numpy(anchor), torch.from_numpy(value), radius, norm)  # type: ignore[arg-type]
            same(found, anchor + ratio * change, sums=12)
    inside = project(torch.from_numpy(anchor), torch.from_numpy(value), 1e9)
    assert torch.equal(inside, torch.from_numpy(value))


def test_norms_of_a_scalar_and_a_vector_are_one_number() -> None:
    assert norms(torch.tensor(-2.0, dtype=torch.float64)).tolist() == pytest.approx([2.0])
    assert norms(torch.tensor([1.0, -2.0], dtype=torch.float64)).tolist() == pytest.approx([3.0])


def test_tethers_by_name() -> None:
    assert regularizer("l2sp:0.1") == L2SP(0.1)
    assert regularizer("l2sp:0.1,form=decoupled,head=false") == L2SP(0.1, "decoupled", False)
    assert regularizer("ftp") == FTP()
    assert regularizer("ftp:keenness=0.5,radius=inf") == FTP(0.5, radius=float("inf"))
    assert regularizer("spd:2") == SPD(2.0)


@pytest.mark.parametrize(
    ("spelling", "told"),
    [
        ("fpt", "did you mean ftp"),
        ("ftp:kenness=1", "did you mean keenness"),
        ("spd:-1", "0 or more, not -1"),
        ("ftp:2", "in [0, 1]"),
    ],
)
def test_misspelt_tethers_are_refused(spelling: str, told: str) -> None:
    with pytest.raises(UserError, match=told.replace("[", r"\[")):
        regularizer(spelling)
