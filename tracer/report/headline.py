"""The outcome of a group of runs in one or two sentences: gained, lost, on how many images, and whether it is noise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tracer.core.metrics import Interval
from tracer.evaluation.verdict import Change, Verdict, plus_minus
from tracer.report.comparison import Group, Setting, list_data
from tracer.report.measures import TASK, Key, mean_change
from tracer.report.scale import points, shown

FEW = 3  # retained sets that are named one by one; of more, the mean


def headline(group: Group) -> str:
    """What was learned and what was forgotten, compared with the pretrained model."""
    finished = group.finished
    if not finished or group.task is None:
        return _in_progress(group)
    if len(finished) == 1:
        return _single(group, finished[0])
    return _several(group, finished)


def setting_verdict(setting: Setting, among: Collection[Key] | None = None) -> Verdict | None:
    """What a setting gained and lost: on test data of `tracer eval` where there are some, else on held-out images.

    Only what is `among` these keys counts, if they are given.
    """
    changes = {key: change for key, change in setting.changes.items() if among is None or key in among}
    own = [key for key in changes if key.role == "id"] or [key for key in changes if key == TASK]
    if not own:
        return None
    # The same images under two names, as `test` and `./test`, count once: equal changes are taken for the same set.
    return Verdict(mean_change(list(dict.fromkeys(changes[key] for key in own))), _retained(changes))


def comparable(settings: Sequence[Setting]) -> set[Key]:
    """What every setting was measured on, with as many images: only there can one be called better than another."""
    counted = [{(key, change.n) for key, change in setting.changes.items()} for setting in settings]
    return {key for key, _ in set.intersection(*counted)} if counted else set()


def best_setting(settings: Sequence[Setting]) -> Setting:
    """The setting with the highest accuracy on the task as rounded, of equal ones the one that retains most.

    They are ranked by what all of them were measured on.
    """
    keys = comparable([setting for setting in settings if setting.changes])

    def rank(setting: Setting) -> tuple[float, float]:
        outcome = setting_verdict(setting, keys)
        if outcome is None:
            return -1.0, 0.0
        changes = [change.difference.value for change in outcome.retained.values()]
        return round(outcome.task.after.value, 3), sum(changes) / max(1, len(changes))

    return max(settings, key=rank)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _retained(changes: Mapping[Key, Change]) -> dict[str, Change]:
    """Retained data by name, else shifts: each, or their mean if there are many."""
    trained = {key.data: key for key in changes if key.path[0] == "retain"}
    tested = {key.data: key for key in changes if key.role == "retain"}
    keys = [*(trained | tested).values()] or [key for key in changes if key.shifted]
    if len(keys) <= FEW:
        return {key.data: changes[key] for key in keys}
    return {f"the mean of {list_data(keys)}": mean_change([changes[key] for key in keys])}


def _in_progress(group: Group) -> str:
    furthest = max(group.runs, key=lambda run: run.step / (run.steps or 1))
    count = len(group.runs)
    which = "The run has" if count == 1 else f"None of {count} runs has"
    rest = "not finished" if count == 1 else "finished"
    return f"{which} {rest}: {furthest.name} is at step {furthest.step} of {furthest.steps or '?'}."


def _single(group: Group, setting: Setting) -> str:
    outcome = setting_verdict(setting)
    start = f"{setting.label} on {group.name}. "
    if outcome is None:
        after = setting.estimate(group.task) if group.task else None
        assert after is not None
        return f"{start}Task: {_level(after, 0)} after training; it was not measured before."
    images = "test images" if setting.tested else "held-out images"
    sentence = outcome.sentence(images).removesuffix(".")
    sentence += "" if outcome.retained else "; nothing that it should retain was measured"
    seeds = len(setting.finished)
    sentence += f"; means over {seeds} seeds" if seeds > 1 else ""
    return f"{start}{sentence}.{_calibration(group, setting)}"


def _several(group: Group, finished: list[Setting]) -> str:
    """The settings that learn most, what each of them forgets, and the one that forgets least if it learns less."""
    compared = [setting for setting in finished if setting.changes]
    keys = comparable(compared)
    outcomes = {s.label: outcome for s in compared if (outcome := setting_verdict(s, keys)) is not None}
    if not outcomes:
        return f"{len(finished)} settings on {group.name}, none of them measured before and after training."
    reached = {label: outcome.task.after for label, outcome in outcomes.items()}
    best = shown(max(each.value for each in reached.values()), True)
    top = [label for label, each in reached.items() if shown(each.value, True) == best]
    subject = listed(top) if len(top) <= 3 else f"{len(top)} settings"
    if len(top) == len(finished) > 2:
        subject = f"All {len(outcomes)} settings"
    task = outcomes[top[0]].task
    sentence = f"{subject} {'reach' if len(top) > 1 else 'reaches'} {_level(reached[top[0]], task.n)} on {group.name}"
    if len({shown(outcome.task.before.value, True) for outcome in outcomes.values()}) == 1:
        sentence += f", from {shown(task.before.value, True)}"
    sentence += _margin(reached, top)
    lost = {label: outcome.retained for label, outcome in outcomes.items() if outcome.retained}
    winner = next(setting for setting in finished if setting.label == top[0])
    calibration = _calibration(group, winner) if len(top) == 1 else ""
    if not lost:
        where = " in all of them" if any(_retained(setting.changes) for setting in compared) else ""
        return f"{sentence}. Nothing that should be retained was measured{where}.{calibration}"
    totals = {label: mean_change([*changes.values()]).difference for label, changes in lost.items()}
    sets = {tuple(changes) for changes in lost.values()}
    names = listed(sets.pop()) if len(sets) == 1 else "retained data"
    sentence += _forgotten(names, {label: totals[label] for label in top if label in totals})
    keeper = max(totals, key=lambda label: totals[label].value)
    if keeper not in top:
        end = shown(reached[keeper].value, True)
        calibration += f" {keeper} keeps more ({_points(totals[keeper])}) and stops at {end}."
    return f"{sentence}{calibration}"


def _calibration(group: Group, setting: Setting) -> str:
    """The change of the calibration error, where it was measured before and after."""
    key = next((key for key in group.keys if key.path == ("ece",)), None)
    before, after = (setting.estimate(key, moment) if key else None for moment in ("before", "after"))
    if before is None or after is None:
        return ""
    return f" Its calibration error on held-out images went from {before.value:.3f} to {after.value:.3f}."


def _margin(reached: Mapping[str, Interval], top: Sequence[str]) -> str:
    """Whether the best is apart from the next by more than both intervals."""
    rest = {label: each for label, each in reached.items() if label not in top}
    if not rest:
        return ""
    label = max(rest, key=lambda each: rest[each].value)
    best, following = reached[top[0]], rest[label]
    if not best.known or not following.known:
        return ""
    if best.low > following.high:
        return f", more than {label} ({shown(following.value, True)}) beyond noise"
    return f"; {label} ({shown(following.value, True)}) is within the noise of that"


def _forgotten(names: str, winners: Mapping[str, Interval]) -> str:
    """The change of retained accuracy of the settings that learn most."""
    if not winners:
        return "."
    least = max(winners, key=lambda label: winners[label].value)
    most = min(winners, key=lambda label: winners[label].value)
    if points(winners[least].value) == points(winners[most].value):
        return f"; {names} changes by {_points(winners[least])} points."
    return (
        f"; of these, {least} keeps most of {names} ({_points(winners[least])} points), "
        f"{most} least ({_points(winners[most])})."
    )


def _points(difference: Interval) -> str:
    half = f" ± {100 * difference.half_width:.1f}" if difference.known else ""
    return f"{points(difference.value)}{half}"


def _level(after: Interval, n: int) -> str:
    """An accuracy with its interval and the number of images."""
    value = plus_minus(after) if after.known else shown(after.value, True)
    return f"{value} of {n} images" if n else value
