"""Saved evaluation logs, graded again: by the rule they were published under, and by ours."""
