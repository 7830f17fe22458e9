"""The outcome in one sentence, written from the numbers and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.report.comparison import Group, Setting
from tracer.report.scale import shown


def headline(group: Group) -> str:
    """What was learned and what was forgotten, against the pretrained model."""
    done = [setting for setting in group.settings if setting.finished]
    if not done or group.task is None:
        return _waiting(group)
    if len(done) == 1:
        return _single(group, done[0])
    return _several(group, done)


def points(change: float) -> str:
    """A difference of shares, in percentage points."""
    return f"{100 * change:+.1f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _waiting(group: Group) -> str:
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
    told = f"{setting.label} reaches {shown(after.value, task.percent)} on {group.name}"
    if before is not None:
        told = (
            f"{setting.label} takes {group.name} from {shown(before.value, task.percent)} "
            f"to {shown(after.value, task.percent)} ({points(after.value - before.value)} points)"
        )
    was, stays = setting.kept(group.kept, "before"), setting.kept(group.kept)
    if was is None or stays is None:
        return f"{told}{_sureness(group, setting)}. Nothing was measured that should have been kept."
    trade = f"from {shown(was.value, True)} to {shown(stays.value, True)} ({points(stays.value - was.value)})"
    return f"{told}; {group.kept_mean} goes {trade}{_sureness(group, setting)}."


def _several(group: Group, done: list[Setting]) -> str:
    """Who learns most, what that costs each of them, and who keeps more at the price of the task."""
    task = group.task
    assert task is not None
    reached = {s.label: e.value for s in done if (e := s.estimate(task)) is not None}
    best = shown(max(reached.values()), task.percent)
    top = [label for label, value in reached.items() if shown(value, task.percent) == best]
    who = f"All {len(done)} settings" if len(top) == len(done) else _few(top)
    told = f"{who} {'reach' if len(top) > 1 else 'reaches'} {best} on {group.name}"
    before = {shown(e.value, task.percent) for s in done if (e := s.estimate(task, "before")) is not None}
    if len(before) == 1:
        told += f", from {before.pop()}"
    changes = {s.label: change for s in done if (change := _change(group, s)) is not None}
    if not changes:
        return f"{told}. Nothing was measured that should have been kept."
    winners = {label: changes[label] for label in top if label in changes}
    told += _price(group, winners)
    if len(top) == 1:
        (winner,) = (setting for setting in done if setting.label == top[0])
        told = f"{told.removesuffix('.')}{_sureness(group, winner)}."
    keeper = max(changes, key=changes.__getitem__)
    if keeper not in winners and keeper in reached:
        ends = shown(reached[keeper], task.percent)
        told += f" {keeper} keeps more ({points(changes[keeper])}) and stops at {ends}."
    return told


def _sureness(group: Group, setting: Setting) -> str:
    """What became of calibration, where it was measured before and after."""
    key = next((key for key in group.keys if key.path == ("ece",)), None)
    before, after = (setting.estimate(key, moment) if key else None for moment in ("before", "after"))
    if before is None or after is None:
        return ""
    return f"; its calibration error (ECE) goes from {before.value:.3f} to {after.value:.3f}"


def _price(group: Group, winners: dict[str, float]) -> str:
    """What those that learned most did to the rest."""
    if not winners:
        return "."
    least, most = max(winners, key=winners.__getitem__), min(winners, key=winners.__getitem__)
    if points(winners[least]) == points(winners[most]):
        return f"; {group.kept_mean} changes by {points(winners[least])} points."
    return (
        f"; of these, {least} keeps most of {group.kept_name} ({points(winners[least])} points), "
        f"{most} least ({points(winners[most])})."
    )


def _few(labels: list[str]) -> str:
    return listed(labels) if len(labels) <= 3 else f"{len(labels)} settings"


def _change(group: Group, setting: Setting) -> float | None:
    was, stays = setting.kept(group.kept, "before"), setting.kept(group.kept)
    return None if was is None or stays is None else stays.value - was.value
