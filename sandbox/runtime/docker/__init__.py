"""Boxes made by a Docker engine. Imported only when this runtime is chosen."""

from sandbox.runtime.docker.runtime import DockerRuntime

__all__ = ["DockerRuntime"]
