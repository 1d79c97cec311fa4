"""Who acts, one rollout, and ten thousand of them."""
