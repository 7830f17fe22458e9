"""The paper's controlled experiment (§5.1): a small CLIP that reads digits learns colours; what does it forget?

`strategies` says what is compared, `study` runs it as ordinary run directories, `frontier` reads it over all λ,
`teaching` follows the teachers, `figures` draws, `published` holds the paper's numbers.
"""
