"""What `tracer fit` chooses, compared with single methods, on tasks that train in seconds."""
