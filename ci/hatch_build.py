"""Puts the data folders into the wheel as sandbox/_bundled/; an editable install uses them in place."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Bundle(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            for name in ("repos", "task_specs", "verifiers", "certificates"):
                if not (Path(self.root) / name).is_dir():
                    continue  # certificates are made last
                build_data["force_include"][name] = f"sandbox/_bundled/{name}"
