"""tracer: finetune CLIP-style image-text models without losing what they already know."""

__version__ = "0.1.0"
