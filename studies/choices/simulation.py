"""`python -m studies.choices.simulation`: how often intervals after the choice of α hold a known truth.

An image has a margin of the pretrained and one of the finetuned model, normal with a correlation; at α it is named
rightly if their mixture, with a bonus between the ends, is above 0. So accuracies at every α are known.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np

from studies.choices.statistics import Share
from tracer.core.markdown import markdown_table
from tracer.merging.choose import Candidate, best
from tracer.merging.evaluator import Scores

ALPHAS = np.linspace(0, 1, 11)
COUNTS = (60, 170, 500)  # held-out images of 300, 1000 and 5000
EXACT = 1_000_000  # images that give the true accuracies


class Setting(NamedTuple):
    """Mean margins of the pretrained and the finetuned model, their correlation, and the bonus at α = 0.5."""

    before: float
    after: float
    correlation: float
    bonus: float


SETTINGS = {
    "mnist": Setting(0.12, 0.35, 0.6, 0.15),
    "fashion": Setting(0.43, 0.56, 0.8, 0.1),
    "cifar": Setting(-0.73, -0.55, 0.6, 0.0),
    "no gain": Setting(0.3, 0.3, 0.7, 0.2),
    "large gain": Setting(-0.3, 0.9, 0.5, 0.3),
    "close models": Setting(0.12, 0.4, 0.9, 0.0),
}


def hits(setting: Setting, n: int, rng: np.random.Generator) -> np.ndarray:
    """Whether each of n images is named rightly at each α."""
    first, other = rng.normal(size=(2, n, 1))
    last = setting.correlation * first + math.sqrt(1 - setting.correlation**2) * other
    mixture = (1 - ALPHAS) * (first + setting.before) + ALPHAS * (last + setting.after)
    return mixture + setting.bonus * ALPHAS * (1 - ALPHAS) > 0


def row(name: str, n: int, trials: int) -> tuple[str, ...]:
    """How often the truth lies below and within the interval of merged − unmerged, without and with the correction."""
    setting, rng = SETTINGS[name], np.random.default_rng(0)
    truth = np.mean([hits(setting, EXACT // 10, rng).mean(axis=0) for _ in range(10)], axis=0)
    below, within, unmerged = [0, 0], [0, 0], 0
    for _ in range(trials):
        sample = hits(setting, n, rng)
        scores = [Scores(each.tolist(), {}, 0.0) for each in sample.T]
        choice = best([Candidate(float(alpha), each) for alpha, each in zip(ALPHAS, scores, strict=True)])
        chosen = round(10 * choice.candidate.alpha)
        unmerged += chosen == 10
        if chosen == 10:
            continue
        true = truth[chosen] - truth[-1]
        for index, optimism in enumerate((0.0, choice.optimism)):
            difference = scores[chosen]._replace(optimism=optimism).verdict(scores[-1]).task.difference
            below[index] += true < difference.low
            within[index] += difference.low <= true <= difference.high
    shares = [f"{100 * count / trials:.1f}" for count in below]
    return (
        *(name, str(n), f"{100 * unmerged / trials:.0f}", *shares),
        *(str(Share(count, trials - unmerged)) for count in within),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.choices.simulation", description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="of each setting and number of images")
    options = parser.parse_args()
    header = ("setting", "images", "α = 1", "below, plain", "below", "covers, plain", "covers")
    rows = [row(name, n, options.trials) for name in SETTINGS for n in COUNTS]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
