"""Meshes and textures that robosuite brings: found without importing it, read without its loaders."""

from __future__ import annotations

import importlib.util
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sim_envs.parts.solids import Solid
from sim_envs.robosuite_tasks import RobosuiteMissing

TEXTURE_SIDE = 128


def package_folder(package: str) -> Path | None:
    """Where an installed package lies; None where it is not installed."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


@lru_cache(maxsize=1)
def assets() -> Path:
    """robosuite's folder of assets.

    Raises:
        RobosuiteMissing: robosuite is not installed.
    """
    if (folder := package_folder("robosuite")) is None:
        raise RobosuiteMissing("parts need the meshes of robosuite, which is not installed; `make setup` installs it")
    return folder / "models" / "assets"


@cache
def packaged_solid(name: str) -> Solid:
    """The mesh of `objects/meshes/NAME.obj` with the places of its texture."""
    vertices: list[list[float]] = []
    places: list[list[float]] = []
    corners: list[list[tuple[int, int]]] = []
    for line in (assets() / "objects" / "meshes" / f"{name}.obj").read_text().splitlines():
        kind, *values = line.split() or [""]
        if kind == "v":
            vertices.append([float(value) for value in values])
        elif kind == "vt":
            places.append([float(value) for value in values[:2]])
        elif kind == "f":
            face = [(int(at.split("/")[0]) - 1, int(at.split("/")[1]) - 1) for at in values]
            corners += [[face[0], face[k], face[k + 1]] for k in range(1, len(face) - 1)]
    indices = np.array(corners)
    uv = np.array(places)[indices[..., 1]] * (1, -1) + (0, 1)  # MuJoCo counts rows from above
    return Solid(vertices=np.array(vertices), faces=indices[..., 0].astype(np.int64), corner_uv=uv)


@cache
def packaged_texture(name: str) -> NDArray[np.uint8]:
    """The texture `textures/NAME.png`, (TEXTURE_SIDE, TEXTURE_SIDE, 3)."""
    with Image.open(assets() / "textures" / f"{name}.png") as picture:
        small = picture.convert("RGB").resize((TEXTURE_SIDE, TEXTURE_SIDE), Image.Resampling.BOX)
    return np.asarray(small, np.uint8)
