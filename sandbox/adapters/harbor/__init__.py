"""Harbor's and Terminal-Bench's tasks: converted into ours, and ours written as Harbor's."""
