"""Put in front of PYTHONPATH: `import open_clip` in a process of its own does without what it can do without."""

import sys

for name in (
    "transformers",
    "wandb",
):  # optional to open_clip and timm; importing them takes as long as the rest
    sys.modules[name] = None  # type: ignore[assignment]
