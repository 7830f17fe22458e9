"""What a model answered, read from the folder where it is kept."""

from __future__ import annotations

from pathlib import Path

from tracer.measure.answers import Answers, Estimate, Predictions, Store


def answers(folder: Path) -> dict[str, Answers]:
    """Answers by the name of the test set, with what was predicted."""
    store, found = Store(folder), {}
    for known in store.all():
        read = store.read(known.name, known.role, known.by, known.key)
        assert read is not None, known.name
        found[known.name] = read
    return found


def predictions(folder: Path, name: str = "") -> Predictions:
    """What was predicted of a test set; of the only one without a name."""
    found = answers(folder)
    (name,) = [name] if name else found
    predicted = found[name].predictions
    assert predicted is not None
    return predicted


def estimates(folder: Path) -> dict[tuple[str, str], Estimate]:
    """Every number by test set and metric."""
    headers = Store(folder).all()
    return {(each.data, each.metric): each for known in headers for each in known.estimates}


def measured(folder: Path) -> dict[str, Estimate]:
    """Every number of the only test set by its metric."""
    assert len({name for name, _ in estimates(folder)}) == 1
    return {metric: each for (_, metric), each in estimates(folder).items()}
