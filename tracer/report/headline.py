"""The outcome of a group of runs in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.report.comparison import Group, Setting
from tracer.report.scale import shown


def headline(group: Group) -> str:
    """What was learned and what was forgotten, compared with the pretrained model."""
    finished = [setting for setting in group.settings if setting.finished]
    if not finished or group.task is None:
        return _in_progress(group)
    if len(finished) == 1:
        return _single(group, finished[0])
    return _several(group, finished)


def points(change: float) -> str:
    """A difference of shares in percentage points."""
    return f"{100 * change:+.1f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _in_progress(group: Group) -> str:
    furthest = max(group.runs, key=lambda run: run.step / (run.steps or 1))
    count = len(group.runs)
    which = "The run has" if count == 1 else f"None of {count} runs has"
    rest = "not finished" if count == 1 else "finished"
    return f"{which} {rest}: {furthest.name} is at step {furthest.step} of {furthest.steps or '?'}."


def _single(group: Group, setting: Setting) -> str:
    task = group.task
    assert task is not None
    before, after = setting.estimate(task, "before"), setting.estimate(task)
    assert after is not None
    sentence = f"{setting.label} reaches {shown(after.value, task.percent)} on {group.name}"
    if before is not None:
        sentence = (
            f"{setting.label} takes {group.name} from {shown(before.value, task.percent)} "
            f"to {shown(after.value, task.percent)} ({points(after.value - before.value)} points)"
        )
    start, end = setting.mean(group.retained, "before"), setting.mean(group.retained)
    if start is None or end is None:
        return f"{sentence}{_calibration(group, setting)}. No retained data were evaluated."
    trade = f"from {shown(start.value, True)} to {shown(end.value, True)} ({points(end.value - start.value)})"
    return f"{sentence}; {group.retained_mean} goes {trade}{_calibration(group, setting)}."


def _several(group: Group, finished: list[Setting]) -> str:
    """The settings that learn most, what each of them forgets, and the one that forgets least if it learns less."""
    task = group.task
    assert task is not None
    reached = {s.label: e.value for s in finished if (e := s.estimate(task)) is not None}
    best = shown(max(reached.values()), task.percent)
    top = [label for label, value in reached.items() if shown(value, task.percent) == best]
    subject = f"All {len(finished)} settings" if len(top) == len(finished) else _subject(top)
    sentence = f"{subject} {'reach' if len(top) > 1 else 'reaches'} {best} on {group.name}"
    before = {shown(e.value, task.percent) for s in finished if (e := s.estimate(task, "before")) is not None}
    if len(before) == 1:
        sentence += f", from {before.pop()}"
    changes = {s.label: change for s in finished if (change := _change(group, s)) is not None}
    if not changes:
        return f"{sentence}. No retained data were evaluated."
    winners = {label: changes[label] for label in top if label in changes}
    sentence += _forgotten(group, winners)
    if len(top) == 1:
        (winner,) = (setting for setting in finished if setting.label == top[0])
        sentence = f"{sentence.removesuffix('.')}{_calibration(group, winner)}."
    keeper = max(changes, key=changes.__getitem__)
    if keeper not in winners and keeper in reached:
        end = shown(reached[keeper], task.percent)
        sentence += f" {keeper} keeps more ({points(changes[keeper])}) and stops at {end}."
    return sentence


def _calibration(group: Group, setting: Setting) -> str:
    """The change of the calibration error, where it was measured before and after."""
    key = next((key for key in group.keys if key.path == ("ece",)), None)
    before, after = (setting.estimate(key, moment) if key else None for moment in ("before", "after"))
    if before is None or after is None:
        return ""
    return f"; its calibration error (ECE) goes from {before.value:.3f} to {after.value:.3f}"


def _forgotten(group: Group, winners: dict[str, float]) -> str:
    """The change of retained accuracy of the settings that learn most."""
    if not winners:
        return "."
    least, most = max(winners, key=winners.__getitem__), min(winners, key=winners.__getitem__)
    if points(winners[least]) == points(winners[most]):
        return f"; {group.retained_mean} changes by {points(winners[least])} points."
    return (
        f"; of these, {least} keeps most of {group.retained_name} ({points(winners[least])} points), "
        f"{most} least ({points(winners[most])})."
    )


def _subject(labels: list[str]) -> str:
    return listed(labels) if len(labels) <= 3 else f"{len(labels)} settings"


def _change(group: Group, setting: Setting) -> float | None:
    start, end = setting.mean(group.retained, "before"), setting.mean(group.retained)
    return None if start is None or end is None else end.value - start.value
