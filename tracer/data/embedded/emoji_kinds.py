"""Kinds: Unicode's 94 subgroups of emoji, merged until each holds enough of them to learn and to test.

Each kind has at least nine emoji and an everyday name. Keycaps and the "other" objects and symbols belong to no
kind.
"""

from __future__ import annotations

SUBGROUPS: dict[str, tuple[str, ...]] = {
    "smiling face": ("face-smiling", "face-affection", "face-tongue", "face-hat", "face-glasses"),
    "skeptical face": ("face-neutral-skeptical", "face-hand"),
    "sick face": ("face-sleepy", "face-unwell"),
    "unhappy face": ("face-concerned", "face-negative"),
    "animal face": ("cat-face", "monkey-face"),
    "heart": ("heart",),
    "comic symbol": ("emotion",),
    "hand gesture": (
        "hand-fingers-open",
        "hand-fingers-partial",
        "hand-single-finger",
        "hand-fingers-closed",
        "hands",
        "hand-prop",
    ),
    "body part": ("body-parts",),
    "person": ("person", "person-gesture", "family", "person-symbol"),
    "profession": ("person-role",),
    "sporting person": ("person-activity", "person-sport", "person-resting"),
    "fantasy creature": ("person-fantasy", "face-costume"),
    "mammal": ("animal-mammal",),
    "bird": ("animal-bird",),
    "fish or reptile": ("animal-marine", "animal-reptile", "animal-amphibian"),
    "insect": ("animal-bug",),
    "plant": ("plant-flower", "plant-other"),
    "fruit": ("food-fruit",),
    "vegetable": ("food-vegetable",),
    "meal": ("food-prepared",),
    "asian food": ("food-asian",),
    "dessert": ("food-sweet",),
    "drink": ("drink",),
    "household item": ("household", "dishware", "hotel"),
    "landscape": ("place-map", "place-geographic", "place-other"),
    "building": ("place-building", "place-religious"),
    "vehicle": ("transport-ground",),
    "boat": ("transport-water",),
    "aircraft": ("transport-air",),
    "clock": ("time",),
    "weather": ("sky & weather",),
    "celebration": ("event",),
    "sport": ("sport", "award-medal"),
    "game": ("game",),
    "clothing": ("clothing",),
    "music": ("sound", "music", "musical-instrument"),
    "electronic device": ("phone", "computer", "light & video"),
    "book": ("book-paper",),
    "money": ("money",),
    "mail": ("mail",),
    "art supply": ("writing", "arts & crafts"),
    "office supply": ("office",),
    "tool": ("tool", "lock"),
    "science": ("science", "medical"),
    "traffic sign": ("transport-sign", "warning"),
    "arrow": ("arrow",),
    "religious symbol": ("religion",),
    "zodiac sign": ("zodiac",),
    "media button": ("av-symbol",),
    "mathematical sign": ("math", "punctuation", "gender", "currency"),
    "letters": ("alphanum",),
    "geometric shape": ("geometric",),
}
LEFT_OVER = ("keycap", "other-object", "other-symbol")
KINDS = tuple(SUBGROUPS)
KIND_OF = {subgroup: kind for kind, subgroups in SUBGROUPS.items() for subgroup in subgroups}
