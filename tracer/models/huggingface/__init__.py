"""CLIP and SigLIP models of transformers, read and written as open_clip modules."""
