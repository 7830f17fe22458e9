"""The choice of α on held-out images that can, or cannot, tell the candidates apart."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.core.errors import UserError
from tracer.merging.choose import Candidate, balanced, best, strongest
from tracer.merging.evaluator import Scores

ALPHAS = [0, 0.25, 0.5, 0.75, 1]


def sweep(n: int, accuracies: list[float], seed: int = 0) -> list[Candidate]:
    """Candidates that are right on nested sets of n images."""
    order = np.random.default_rng(seed).permutation(n)
    candidates = []
    for alpha, accuracy in zip(ALPHAS, accuracies, strict=True):
        hits = (order < round(accuracy * n)).tolist()
        candidates.append(Candidate(alpha, Scores(hits, {}, 1.0)))
    return candidates


def test_ten_images_choose_nothing() -> None:
    chosen, why, _ = best(sweep(10, [0.2, 0.7, 0.5, 0.6, 0.6]))
    assert chosen.alpha == 0.5
    assert why.startswith("10 held-out images cannot tell these α apart")


def test_ten_images_do_not_balance_task_and_retention_either() -> None:
    few, many = ([0.2, 0.7, 0.5, 0.9, 0.6] for _ in range(2))
    assert balanced(sweep(10, few))[0].alpha == 0.5
    assert balanced(sweep(300, many))[0].alpha == 0.75


def test_many_images_that_agree_choose_nothing_either() -> None:
    chosen, why, _ = best(sweep(300, [0.70, 0.70, 0.70, 0.70, 0.70]))
    assert chosen.alpha == 0.5
    assert "cannot tell" in why


def test_a_clear_best_is_taken() -> None:
    chosen, why, _ = best(sweep(300, [0.2, 0.4, 0.9, 0.6, 0.5]))
    assert chosen.alpha == 0.5
    assert why == "the best on 300 held-out images"


def test_within_one_standard_error_the_one_nearer_to_the_start_is_taken() -> None:
    chosen, why, _ = best(sweep(1000, [0.2, 0.4, 0.799, 0.80, 0.80]))
    assert chosen.alpha == 0.5
    assert "within one standard error of the best (α = 0.75)" in why


@pytest.mark.parametrize("n", [60, 200, 1000])
def test_a_clearly_worse_candidate_is_never_chosen(n: int) -> None:
    for seed in range(5):
        noise = np.random.default_rng(seed).normal(0, 0.02, 5)
        accuracies = np.clip(np.array([0.2, 0.3, 0.75, 0.8, 0.8]) + noise, 0, 1).tolist()
        chosen, *_ = best(sweep(n, accuracies, seed))
        assert chosen.alpha >= 0.5


def test_nothing_is_taken_off_where_nothing_was_chosen() -> None:
    assert best(sweep(10, [0.2, 0.7, 0.5, 0.6, 0.6])).optimism == 0
    assert best(sweep(300, [0.70, 0.70, 0.70, 0.70, 0.70])).optimism == 0
    assert best(sweep(300, [0.2, 0.4, 0.9, 0.6, 0.5])).optimism == 0


def _sentence(after: Scores, before: Scores) -> str:
    return after._replace(optimism=0.02).verdict(before).sentence()


def test_verdict_of_chosen_weights_is_less_its_optimism() -> None:
    before, after = (each.scores for each in sweep(200, [0.5, 0.6, 0.6, 0.6, 0.6])[:2])
    task = after._replace(optimism=0.02).verdict(before).task
    plain = after.verdict(before).task
    assert task.difference == pytest.approx([end - 0.02 for end in plain.difference])
    assert task.after.value == pytest.approx(0.58)
    assert "50.0 → 60.0 % of 200 held-out images, 58.0 % less the luck of the choice)" in _sentence(
        after, before
    )
    itself = after._replace(optimism=0.02).verdict(after).task.difference
    assert itself.value == 0


def test_where_no_mixture_keeps_enough_the_pretrained_model_is_not_taken_for_one() -> None:
    kept = [Candidate(alpha, Scores([True], {}, share)) for alpha, share in ((0, 1.0), (0.5, 0.9), (1, 0.8))]
    before = kept[0].scores
    assert strongest(kept, 0.9, before, "10 images").candidate.alpha == 0.5
    for candidates in (kept, kept[1:]):
        with pytest.raises(
            UserError, match=r"keeps 0\.97 of 10 images: α = 0\.5 keeps most, 0\.900\. No weights"
        ):
            strongest(candidates, 0.97, before, "10 images")
