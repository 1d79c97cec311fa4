"""Is this task sound?"""
