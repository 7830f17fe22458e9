"""How often a merge was worse than it said, and how often printed intervals held the truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from studies.choices.study import Outcome, Stated
from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval, wilson_interval

MOST_WORSE = 0.05
COVERAGE = (0.93, 0.97)


class Share(NamedTuple):
    """Cases out of a number, with the interval of the share."""

    cases: int
    n: int

    @property
    def interval(self) -> Interval:
        return wilson_interval(self.cases / self.n if self.n else 0.0, self.n)

    def __str__(self) -> str:
        low, value, high = self.interval
        return f"{100 * value:.1f} % ({100 * low:.1f} to {100 * high:.1f}), {self.cases} of {self.n}"

    def within(self, low: float, high: float) -> bool:
        """Whether the share lies between these bounds, or cannot be told from them: its interval overlaps them."""
        return self.interval.high >= low and self.interval.low <= high


def covers(stated: Stated) -> bool:
    """Whether the printed interval holds the truth."""
    return stated.low <= stated.truth <= stated.high


def worse_than_stated(difference: Stated) -> bool:
    """Whether the model is truly worse, and by more than the printed interval allows: below its lower end."""
    return difference.truth < min(0.0, difference.low)


def worse_by_more_than_half_width(difference: Stated) -> bool:
    """Whether the model is truly worse by more than the ± that was printed."""
    return difference.truth < -(difference.high - difference.low) / 2


def coverage(stated: Iterable[Stated]) -> Share:
    """How many intervals hold the truth. An interval of a difference of a model with itself is left out."""
    judged = [covers(each) for each in stated]
    return Share(sum(judged), len(judged))


def changed(outcomes: Sequence[Outcome], difference: str) -> list[Stated]:
    """The printed differences between two different models: α = 1 is no merge, α = 0 the pretrained model."""
    same = {"merged − finetuned": 1.0, "merged − pretrained": 0.0}.get(difference)
    return [each.differences[difference] for each in outcomes if each.alpha != same]


def rows(outcomes: Sequence[Outcome]) -> list[tuple[str, str, str]]:
    """Every measure with its goal and whether it is met."""
    lines: list[tuple[str, Share, tuple[float, float] | None]] = []
    for other, name in (("no merge", "merged − finetuned"), ("the pretrained model", "merged − pretrained")):
        differences = [each.differences[name] for each in outcomes]
        for text, judge in (
            ("below the interval", worse_than_stated),
            ("by more than the ±", worse_by_more_than_half_width),
        ):
            share = Share(sum(map(judge, differences)), len(differences))
            lines.append((f"merged model worse than {other}, {text}", share, (0.0, MOST_WORSE)))
    worse = Share(sum(each.clearly_worse for each in outcomes), len(outcomes))
    lines.append(("merged model clearly worse than no merge, by any amount", worse, None))
    for name in outcomes[0].accuracies:
        share = coverage(each.accuracies[name] for each in outcomes)
        lines.append((f"held-out accuracy, {name}: interval holds the truth", share, COVERAGE))
    for name in outcomes[0].differences:
        share = coverage(changed(outcomes, name))
        lines.append((f"held-out difference, {name}: interval holds the truth", share, COVERAGE))
    tests = sum(each.test_sets for each in outcomes)
    for text, count in (
        ("accuracy on a test set of 300", sum(each.accuracies_covered for each in outcomes)),
        ("difference on a test set of 300", sum(each.differences_covered for each in outcomes)),
    ):
        if tests:
            lines.append((f"{text}: interval holds the truth", Share(count, tests), COVERAGE))
    return [(name, str(share), _verdict(share, goal)) for name, share, goal in lines]


def by_size(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """For each data set and size: held-out images, true accuracies, the chosen α, and how often none was chosen."""
    lines: list[tuple[str, ...]] = []
    for data, images in dict.fromkeys((each.data, each.images) for each in outcomes):
        group = [each for each in outcomes if (each.data, each.images) == (data, images)]
        means = [
            f"{100 * sum(each.truth[name] for each in group) / len(group):.1f}"
            for name in ("pretrained", "finetuned", "merged")
        ]
        alphas = sorted(each.alpha for each in group)
        undecided = sum(not each.told_apart for each in group)
        worst = min(each.truth["merged"] - each.truth["finetuned"] for each in group)
        lines.append(
            (
                *(data, str(images), str(group[0].held_out), *means),
                f"{alphas[0]:g} to {alphas[-1]:g}, median {alphas[len(alphas) // 2]:g}",
                f"{undecided} of {len(group)}",
                f"{100 * worst:+.1f}",
            )
        )
    return lines


def tables(outcomes: Sequence[Outcome]) -> str:
    """Both tables in Markdown."""
    first = markdown_table(("measure", "share", "goal"), rows(outcomes))
    header = (
        "data",
        "images",
        "held out",
        "pretrained",
        "finetuned",
        "merged",
        "α",
        "not told apart",
        "worst",
    )
    return f"{first}\n\n{markdown_table(header, by_size(outcomes))}\n"


def _verdict(share: Share, goal: tuple[float, float] | None) -> str:
    if goal is None:
        return ""
    low, high = goal
    wanted = f"at most {high:.0%}" if low == 0 else f"{100 * low:.0f} to {100 * high:.0f} %"
    if low <= share.interval.value <= high:
        return f"{wanted}: met"
    return f"{wanted}: {'beyond it, within noise' if share.within(*goal) else 'missed'}"
