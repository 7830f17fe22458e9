"""Files: atomic writes, checksums, safetensors, provenance."""
