"""Teachers for the training loops of other libraries: `huggingface` (Trainer) and `lightning`, one file each."""
