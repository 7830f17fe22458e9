"""The paper's controlled experiment (§5.1): a small CLIP that reads digits learns colours; what does it forget?

`strategies` lists what is compared, `study` runs it, `frontier` compares all λ, `teaching` measures the teachers,
`table`, `figures` and `files` present the results, `published` holds the paper's numbers.
"""
