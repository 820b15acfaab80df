"""Facts about the machine and the software, for reports. Nothing that names the host or its users."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("headway", "openvino", "openvino-genai", "numpy")


def machine_facts() -> dict[str, Any]:
    """cpu: model name; cores: usable logical CPUs; memory_gib: of the machine; os and python: name and version."""
    return {
        "cpu": _cpu_model(),
        "cores": _usable_cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "os": _os_name(),
        "python": platform.python_version(),
    }


def versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str | None]:
    """The installed version of each package, None if it isn't installed."""
    return {package: _version(package) for package in packages}


def describe(facts: dict[str, Any]) -> str:
    """The facts as one line for people."""
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']:.0f} GiB, {facts['os']}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model") and value.strip():
                return " ".join(value.split())
    return platform.processor() or platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError, AttributeError):
        return f"{platform.system()} {platform.release()}"
