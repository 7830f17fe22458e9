"""The forgetting meter finds updates where they were put, in every kind of linear layer."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from closeness import same
from torch import Tensor, nn

from studies.theory.meter import feature_rows, task_bases, weight_rows
from studies.theory.products import Product, record_inputs
from studies.theory.sketch import Sketch
from tracer.core.errors import UserError


class Block(nn.Module):
    """Attention, a linear layer and a bare projection, as CLIP's towers have them."""

    def __init__(self, width: int = 12, heads: int = 3, out: int = 5) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.fc = nn.Linear(width, 7)
        self.proj = nn.Parameter(torch.randn(7, out))
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return self.drop(torch.tanh(self.fc(x))).mean(dim=1) @ self.proj


@pytest.fixture
def block() -> Block:
    torch.manual_seed(0)
    return Block().double()


def narrow(count: int, rank: int, width: int, seed: int = 0, tokens: int = 4) -> Tensor:
    """Inputs that span only `rank` directions."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(rank, width, dtype=torch.float64, generator=generator)
    return torch.randn(count, tokens, rank, dtype=torch.float64, generator=generator) @ directions


def test_update_inside_and_outside_the_task_is_told_apart() -> None:
    torch.manual_seed(0)
    before, inputs = nn.Linear(10, 4).double(), narrow(8, 3, 10).flatten(end_dim=1)
    basis = torch.linalg.svd(inputs, full_matrices=False)[2][:3]
    update = torch.randn(4, 10, dtype=torch.float64)
    inside = update @ basis.T @ basis
    for change, share in ((inside, 1.0), (update - inside, 0.0), (update, None)):
        after = copy.deepcopy(before)
        after.weight.data += change
        (row,) = weight_rows(before, after, [inputs[:20], inputs[20:]], energy=1.0)
        assert (row.rank, row.width, row.chance) == (3, 10, 0.3)
        expected = float(inside.norm() ** 2 / update.norm() ** 2) if share is None else share
        assert row.share == pytest.approx(expected, abs=1e-10)
        assert math.hypot(row.inside, row.outside) == pytest.approx(float(change.norm()), rel=1e-10)


def test_gradient_descent_stays_inside_and_weight_decay_does_not(block: Block) -> None:
    """The theory in a deep network: the gradient of a linear layer lies in the span of its inputs."""
    task = narrow(2, 4, 12, tokens=3)
    for decay, stays in ((0.0, True), (0.5, False)):
        after = copy.deepcopy(block).eval()
        optimiser = torch.optim.SGD(after.parameters(), lr=1e-3, weight_decay=decay)
        after(task).square().sum().backward()
        optimiser.step()
        rows = weight_rows(block, after, [task], energy=1.0)
        assert [row.layer for row in rows] == ["attn.in_proj", "attn.out_proj", "fc", "proj"]
        for row in rows:
            assert row.rank < row.width  # all of these layers see fewer directions than they have
            assert (row.outside < 1e-9 * row.inside) == stays


def test_inputs_of_attention_are_those_of_its_own_arithmetic(block: Block) -> None:
    """in_proj sees the tokens; out_proj sees what makes attention's output when multiplied by its weight."""
    inputs_of: dict[str, Tensor] = {}
    inputs = narrow(2, 6, 12)
    with record_inputs(block, lambda product, rows: inputs_of.__setitem__(product.layer, rows)):
        block(inputs)
        output = block.attn(inputs, inputs, inputs)[0]
    assert torch.equal(inputs_of["attn.in_proj"].sort(0).values, inputs.flatten(end_dim=1).sort(0).values)
    made = inputs_of["attn.out_proj"] @ block.attn.out_proj.weight.T + block.attn.out_proj.bias
    same(made.reshape(4, 2, 12).transpose(0, 1), output, sums=50)


@pytest.mark.parametrize("apart", [False, True])
def test_cross_attention_has_a_row_for_each_input(apart: bool) -> None:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(6, 2, kdim=4 if apart else None, vdim=3 if apart else None).double()
    sizes = (6, 4, 3) if apart else (6, 6, 6)
    inputs = [narrow(3, 2, size, seed=size + i) for i, size in enumerate(sizes)]
    bases = task_bases(attention, [inputs], 1.0, 512, lambda model, batch: model(*batch))
    layers = [product.layer for product in bases]
    expected = ["q_proj", "k_proj", "v_proj"] if apart else ["in_proj.q", "in_proj.k", "in_proj.v"]
    assert layers == [*expected, "out_proj"]
    for product, size in zip(bases, sizes, strict=False):
        assert product.matrix(dict(attention.named_parameters())).shape == (6, size)
        assert bases[product].shape == (size, 2)


def test_change_on_retained_inputs_adds_up(block: Block) -> None:
    after = copy.deepcopy(block)
    generator = torch.Generator().manual_seed(1)
    for parameter in after.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    task, retained = narrow(3, 4, 12), narrow(5, 12, 12, seed=7)
    rows = {
        row.layer: row for row in feature_rows(block, after, [task], [retained[:2], retained[2:]], energy=1.0)
    }
    first = rows["attn.in_proj"]
    assert first.inherited == 0.0
    change = retained.flatten(end_dim=1) @ (after.attn.in_proj_weight - block.attn.in_proj_weight).T.detach()
    basis = task_bases(block, [task], 1.0, 512, nn.Module.__call__)[Product("attn.in_proj_weight")]
    through = retained.flatten(end_dim=1) @ basis @ basis.T
    inside = through @ (after.attn.in_proj_weight - block.attn.in_proj_weight).T.detach()
    count = len(change)
    assert first.inside == pytest.approx(float(inside.norm()) / math.sqrt(count), rel=1e-10)
    assert first.outside == pytest.approx(float((change - inside).norm()) / math.sqrt(count), rel=1e-10)
    assert rows["fc"].inherited > 0


def test_retained_inputs_beside_the_task_do_not_feel_an_update_inside_it() -> None:
    """W P changes, x is orthogonal to P: nothing happens to x, exactly as the decomposition says."""
    torch.manual_seed(0)
    before = nn.Linear(6, 3).double()
    task, beside = torch.eye(6, dtype=torch.float64)[:2], torch.eye(6, dtype=torch.float64)[2:]
    after = copy.deepcopy(before)
    after.weight.data[:, :2] += 1.0
    (row,) = feature_rows(before, after, [task], [beside], energy=1.0)
    assert (row.inside, row.outside, row.inherited) == (0.0, 0.0, 0.0)
    assert math.isnan(row.share)


def test_every_matrix_of_a_clip_model_is_seen() -> None:
    """All but the tables and the patch convolution; an update that knows no task has its share by chance."""
    from tracer.models.open_clip_compat import open_clip

    torch.manual_seed(0)
    vision = open_clip.CLIPVisionCfg(image_size=32, patch_size=8, width=64, layers=2, head_width=16)
    text = open_clip.CLIPTextCfg(context_length=8, vocab_size=50, width=48, heads=3, layers=2)
    before = open_clip.CLIP(32, vision, text)
    after = copy.deepcopy(before)
    for parameter in after.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    batch = (torch.randn(8, 3, 32, 32), torch.randint(0, 50, (8, 8)))
    products = task_bases(before, [batch], 0.99, 512, lambda model, batch: model(*batch))
    matrices = {name for name, parameter in before.named_parameters() if parameter.dim() == 2}
    tables = {"visual.positional_embedding", "positional_embedding", "token_embedding.weight"}
    assert {product.parameter for product in products} == matrices - tables
    for row in weight_rows(before, after, [batch], run=lambda model, batch: model(*batch)):
        assert row.share == pytest.approx(row.chance, abs=0.06)


def test_meter_leaves_the_models_as_they_were(block: Block) -> None:
    block.train()
    block.attn.eval()
    modes = [module.training for module in block.modules()]
    state = copy.deepcopy(block.state_dict())
    after = copy.deepcopy(block)
    for parameter in after.parameters():
        parameter.data += 1.0
    first = weight_rows(block, after, [narrow(2, 3, 12)])
    assert first == weight_rows(block, after, [narrow(2, 3, 12)])  # dropout plays no part
    assert [module.training for module in block.modules()] == modes
    assert all(torch.equal(state[name], value) for name, value in block.state_dict().items())
    assert all(parameter.grad is None for parameter in block.parameters())


def test_batches_may_come_in_any_portions(block: Block) -> None:
    task = narrow(12, 5, 12)
    after = copy.deepcopy(block)
    after.fc.weight.data += torch.randn_like(after.fc.weight)
    whole = weight_rows(block, after, [task], energy=0.9)
    parts = weight_rows(block, after, task.split(1), energy=0.9)
    for one, many in zip(whole, parts, strict=True):
        assert one.rank == many.rank
        assert one.inside == pytest.approx(many.inside, abs=1e-9)


def test_checkpoints_that_do_not_match_are_refused(block: Block) -> None:
    with pytest.raises(UserError, match=r"do not match.*fc\.weight"):
        weight_rows(nn.Sequential(), nn.ModuleDict({"fc": nn.Linear(1, 1, bias=False)}), [])
    with pytest.raises(UserError, match="do not match"):
        weight_rows(nn.Linear(2, 3), nn.Linear(3, 2), [])
    with pytest.raises(UserError, match="no batch"):
        weight_rows(block, block, [])
    with pytest.raises(UserError, match="no retained"):
        feature_rows(block, block, [narrow(1, 2, 12)], [])


def test_sketch_is_exact_up_to_its_limit() -> None:
    rows = narrow(40, 6, 30).flatten(end_dim=1)
    sketch = Sketch(30, limit=8)
    for part in rows.split(7):
        sketch.add(part)
    same(sketch.factor.T @ sketch.factor, rows.T @ rows, sums=240)
    assert sketch.basis().shape == (30, 6)
    same(rows @ sketch.basis() @ sketch.basis().T, rows, sums=240)


def test_sketch_beyond_its_limit_keeps_its_promise() -> None:
    """0 ⪯ AᵀA − BᵀB ⪯ ‖A − A_k‖² / (limit − k) for every k."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(200, 30, dtype=torch.float64, generator=generator) * torch.logspace(0, -2, 30)
    sketch = Sketch(30, limit=10)
    for part in rows.split(33):
        sketch.add(part)
    assert sketch.factor.shape[0] <= 10
    assert sketch.energy == pytest.approx(float(rows.square().sum()))
    lost = torch.linalg.eigvalsh(rows.T @ rows - sketch.factor.T @ sketch.factor)
    tail = torch.linalg.svdvals(rows).square()
    assert lost[0] > -1e-9
    for k in range(10):
        assert lost[-1] <= tail[k:].sum() / (10 - k) + 1e-9


def test_energy_takes_the_fewest_directions_that_carry_it() -> None:
    sketch = Sketch(4)
    sketch.add(torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.0])))  # shares 9/14, 4/14, 1/14 and none
    assert [sketch.basis(share).shape[1] for share in (0.5, 0.7, 0.95, 1.0)] == [1, 2, 3, 3]
    with pytest.raises(ValueError, match="not 0"):
        sketch.basis(0)
    with pytest.raises(ValueError, match="1 or more"):
        Sketch(4, limit=0)
