"""Boxes without a daemon: namespaces, overlayfs and cgroups, made by a small process of ours.

host.py runs in the user's process; zygote.py in a clean child that makes boxes; init.py is the
first process of each box. The last two use only the standard library and the modules beside them.
"""
