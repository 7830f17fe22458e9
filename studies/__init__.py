"""Studies that use tracer; they live in the repository and are not part of the package."""
