"""Merge runs with their pretrained model: `tracer merge RUN`."""

from __future__ import annotations

from pathlib import Path

from tracer.api.merge import Merge, check_name, keep, merged, prepare
from tracer.api.terminal import errors, percent, say, show_table
from tracer.cli.flags import command
from tracer.cli.training import show_verdict
from tracer.core.command_line import command_line
from tracer.core.metrics import wilson_interval
from tracer.evaluation.measured import compared_indices
from tracer.evaluation.verdict import plus_minus
from tracer.merging.dawin import accuracies
from tracer.merging.evaluator import Evaluator, Scores
from tracer.merging.merges import Merged
from tracer.runs.run import Run


@command("tracer merge")
def main(runs: tuple[Path, ...], /, request: Merge, name: str | None = None, device: str = "auto") -> int:
    """Merge finished runs with their pretrained model or with each other.

    Examples:
      tracer merge runs/1a2b3c --wise 0:1:0.1              several α, the best chosen on held-out data
      tracer merge runs/1a2b3c --wise 0:1:0.1 --keep 0.98  the largest α that retains 98 %
      tracer merge runs/a runs/b runs/c --soup greedy      the mean of the runs that improve it

    Args:
        runs: folders of finished runs.
        name: name of the merged weights, which are written to the first run.
        device: auto, cpu, cuda or mps.
    """
    way = request.way
    check_name(name)
    opened = [Run.open(folder) for folder in runs]

    def warn(text: str) -> None:
        say(f"warning: {text}", to=errors)

    evaluator = prepare(request, opened, device, warn)
    if way in ("dawin", "ensemble"):
        return _measure(request, evaluator)
    result = merged(request, evaluator)
    by_names = not evaluator.before.retained and (request.keep is not None or request.paint is not None)
    _show(evaluator, result, by_names)
    for note in result.notes:
        say(note)
    run = keep(evaluator, result, name, warn)
    if not evaluator.before.retained and not by_names:
        say("What the model forgot was not measured: --retain DATA measures it.")
    if (points := f"{100 * result.scores.optimism:.1f}") != "0.0":
        say(f"These images chose α: {points} points are taken off the differences below, for luck.")
    unmerged = next((each.scores for each in result.candidates if each.alpha == 1), None)
    if unmerged is not None and result.details["alpha"] != 1:
        change = result.scores.verdict(unmerged)
        say(f"Against no merge: {change.sentence()}")
    say(f"Kept as {run.weights}. Against the pretrained model:")
    command = command_line("eval", run.folder, "--weights", run.weights, "--data", "TEST-IMAGES")
    show_verdict(result.scores.verdict(evaluator.before), command)
    return 0


def _show(evaluator: Evaluator, result: Merged, by_names: bool) -> None:
    """Print the accuracies of the weights that were tried.

    Agreement with a pretrained model that cannot name pictures means little: it is shown only where it chose.
    """
    retained = ["ImageNet names"] if by_names else list(evaluator.before.retained)

    def row(name: str, scores: Scores) -> tuple[str, ...]:
        pairs = [(scores.accuracy, len(scores.hits))]
        pairs += [(sum(hits) / len(hits), len(hits)) for hits in scores.retained_hits.values()]
        pairs += [(scores.agreement, len(compared_indices(len(scores.hits))))] if by_names else []
        return (name, *(plus_minus(wilson_interval(share, n)) for share, n in pairs))

    names = {0.0: "pretrained (α = 0)"}
    swept = any(each.alpha == 0 for each in result.candidates)
    rows = [] if swept else [row("pretrained", evaluator.before)]
    if result.candidates:
        rows += [row(names.get(each.alpha, f"α = {each.alpha:g}"), each.scores) for each in result.candidates]
    else:
        rows += [row(folder, evaluator(end)) for folder, end in evaluator.group.ends.items()]
        rows.append(row(result.name, result.scores))
    images = len(evaluator.held_out)
    show_table(
        result.name, ("weights", f"{images} held-out", *(f"retained: {name}" for name in retained)), rows
    )


def _measure(request: Merge, evaluator: Evaluator) -> int:
    """Print the accuracy of two models combined at inference, which gives no merged weights."""
    rows = accuracies(evaluator, request.dawin, request.ensemble or 0.0).items()
    title = f"{evaluator.group.runs[0].folder} on {evaluator.held_out.name}, {len(evaluator.held_out)} images"
    show_table(title, ("model", "accuracy"), [(name, percent(value)) for name, value in rows])
    return 0
