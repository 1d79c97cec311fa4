"""Submission to evidence (verify, touches the world) to verdict (judge, cannot)."""
