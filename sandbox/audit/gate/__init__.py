"""The gate that admits a task: everything that can be wrong with it, looked for and named."""
