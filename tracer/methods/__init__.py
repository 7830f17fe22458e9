"""One file a method: a function of the file's name whose signature is its flags.

`tracer.methods.flyp(…)` and every other method are attributes of this package, found by file name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.methods.base import Recipe, methods

if TYPE_CHECKING:

    def __getattr__(name: str) -> Recipe: ...


# A method's function takes the place of its module as the package's attribute: `tracer.methods.flyp(epochs=5)`.
globals().update(methods())
