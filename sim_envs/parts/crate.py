"""Crate: one object of every class in one MuJoCo model, with the table, a bin and an arm; each picture shows some of them.

Of the household classes it holds those that are wanted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sim_envs.arm.scene import panda_xml
from sim_envs.parts.catalogue import CLASSES, EVERY, HOUSEHOLD, PartClass, make_solid
from sim_envs.parts.defects import Defect, kinds_of, make_defect
from sim_envs.parts.prints import texture
from sim_envs.parts.solids import Solid
from sim_envs.parts.surfaces import COLOURS, SHIFTED_SURFACES, SHIFTED_TABLES, SURFACES, TABLES, grey_print, surface

SIZES: dict[str, tuple[float, float]] = {"small": (0.68, 0.80), "": (0.93, 1.07), "large": (1.22, 1.40)}
"""Size word (none for the middle) -> range of scales."""
BIN_WALL = 0.004
"""Half the thickness of the bin's walls and floor, metres."""
HIDDEN = 5
"""Geom group that is not drawn."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One object: what it is, and what it looks like.

    Attributes:
        part: its class.
        number: its instance number, different for every object of every seed.
        solid: its mesh at its own size.
        scale: its size over the usual one.
        size: size word, "" for the middle.
        colour: colour word.
        rgb: colour that multiplies its surface.
        surface: name of its surface; "print" where the class' picture is on it.
        defect: its damaged form, None where data without defects are made.
    """

    part: PartClass
    number: int
    solid: Solid
    scale: float
    size: str
    colour: str
    rgb: tuple[float, float, float]
    surface: str
    defect: Defect | None


def draw_instance(part: PartClass, seed: int, crate: int, *, shifted: bool, damaged: bool) -> Instance:
    """The object of a class in a crate.

    Args:
        part: its class.
        seed: of the data.
        crate: which of the objects of its class.
        shifted: with a surface of the shift `texture`.
        damaged: also with its damaged form.
    """
    label = EVERY.index(part)
    generator = np.random.default_rng([seed, crate, label])
    size = str(generator.choice(list(SIZES)))
    scale = float(generator.uniform(*SIZES[size]))
    colour = str(generator.choice(list(COLOURS)))
    jitter = generator.uniform(0.85, 1.12, 3)
    look = str(generator.choice(SURFACES))
    printed = bool(part.picture) and generator.random() < 0.75
    natural = printed and generator.random() < 0.5
    other = str(generator.choice(SHIFTED_SURFACES))
    shape = int(generator.integers(2**31))
    kind = kinds_of(part)[int(generator.integers(len(kinds_of(part))))]
    rgb = tuple(float(value) for value in np.clip(np.array(COLOURS[colour]) * jitter, 0, 1))
    if shifted:
        look, printed, natural = other, False, False
    return Instance(
        part=part, number=(seed * 1000 + crate) * 100 + label, solid=make_solid(part, shape).scaled(scale), scale=scale, size=size,
        colour=part.natural if natural else colour, rgb=(1.0, 1.0, 1.0) if natural else rgb,  # type: ignore[arg-type]
        surface="natural print" if natural else "print" if printed else look,
        defect=make_defect(kind, part, shape) if damaged else None,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Crate:
    """A compiled model and where things are in it.

    Attributes:
        model: the model; an object is a body without joints, so it is moved through `model.body_pos` and `model.body_quat`.
        instances: label -> object, one of each of `CLASSES` and of the household classes that are wanted.
        bodies: label -> body.
        intact: label -> geom of the object as it should be.
        damaged: label -> geoms of the object's damaged form; drawn instead of the intact one, or over it (`Defect.solid` is None).
        tables: texture of a table top -> material.
        arm_geoms: geoms of the arm.
    """

    model: Any
    instances: dict[int, Instance]
    bodies: dict[int, int]
    intact: dict[int, int]
    damaged: dict[int, tuple[int, ...]]
    tables: dict[str, int]
    arm_geoms: tuple[int, ...]


def build_crate(seed: int, crate: int, *, shifted: bool = False, damaged: bool = False, also: Collection[int] = ()) -> Crate:
    """The crate of that number with the twenty, and with the objects of the labels `also`; see `draw_instance`.

    Raises:
        RobosuiteMissing, HouseholdMissing: meshes and textures that are used are not installed.
    """
    labels = sorted({*range(len(CLASSES)), *also})
    instances = {label: draw_instance(EVERY[label], seed, crate, shifted=shifted, damaged=damaged) for label in labels}
    spec = mujoco.MjSpec()
    spec.visual.quality.shadowsize = 1024
    spec.visual.map.shadowclip = 0.5  # metres around the object; a larger map would be coarser
    spec.attach(mujoco.MjSpec.from_string(panda_xml()), prefix="arm ", frame=spec.worldbody.add_frame())
    sky = spec.add_texture(name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT)
    sky.rgb1, sky.rgb2, sky.width, sky.height = [0.75, 0.78, 0.82], [0.35, 0.37, 0.40], 32, 192
    tables = SHIFTED_TABLES if shifted else TABLES
    for name in tables:
        _add_look(spec, f"table {name}", texture(name), cube=False, repeat=5.0)
    world = spec.worldbody
    world.add_light(name="sun", type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, pos=[0, 0, 2], dir=[0, 0, -1], castshadow=True)
    apart = {"pos": [0.0, 0.0, -1e-6], "quat": [0.8, 0.0, 0.0, 0.6]}  # what starts in its body's frame would be held there for ever
    _add_geom(world, "table", mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 0.1], material=f"table {next(iter(tables))}", **apart)
    tray = world.add_body(name="bin")
    for side in range(5):
        _add_geom(tray, f"bin{side}", mujoco.mjtGeom.mjGEOM_BOX, size=[0.1, 0.1, BIN_WALL], **apart)
    for instance in instances.values():
        _add_part(spec, instance)
    model = spec.compile()
    names = {label: instance.part.name for label, instance in instances.items()}
    arm = model.body("arm base").id
    return Crate(
        model=model,
        instances=instances,
        bodies={label: model.body(name).id for label, name in names.items()},
        intact={label: model.geom(f"{name} intact").id for label, name in names.items()},
        damaged={
            label: tuple(g for g in range(model.ngeom) if model.geom(g).name.startswith(f"{name} damaged")) for label, name in names.items()
        },
        tables={name: model.material(f"table {name}").id for name in tables},
        arm_geoms=tuple(g for g in range(model.ngeom) if model.body_rootid[model.geom_bodyid[g]] == arm),
    )


def _add_part(spec: Any, instance: Instance) -> None:
    name, defect = instance.part.name, instance.defect
    material = f"{name} look"
    if instance.surface == "natural print":
        _add_look(spec, material, texture(instance.part.picture), cube=False)
    elif instance.surface == "print":
        _add_look(spec, material, grey_print(instance.part.picture), cube=False)
    else:
        _add_look(spec, material, surface(instance.surface), cube=True)
    look = {"material": material, "rgba": [*instance.rgb, 1.0]}
    body = spec.worldbody.add_body(name=name)
    own_corners = instance.part in HOUSEHOLD
    _add_mesh(spec, body, f"{name} intact", instance.solid, "print" in instance.surface, look, own_corners)
    if defect is None:
        return
    scale = instance.scale
    other = {"rgba": [0.9, 0.9, 0.85, 1.0] if sum(instance.rgb) < 1.5 else [0.08, 0.08, 0.1, 1.0]}
    if defect.solid is not None:
        _add_mesh(spec, body, f"{name} damaged", defect.solid.scaled(scale), "print" in instance.surface, look, own_corners)
    if defect.patch is not None:
        _add_mesh(spec, body, f"{name} damaged", defect.patch.scaled(scale), False, other)
    for index, ends in enumerate(defect.bars * scale):
        bar = _add_geom(body, f"{name} damaged {index}", mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.0013, 0, 0], **other)
        bar.fromto = ends.reshape(-1).tolist()
    if defect.bead:
        size = [defect.bead * scale, 0, 0]
        _add_geom(body, f"{name} damaged", mujoco.mjtGeom.mjGEOM_SPHERE, size=size, pos=(defect.at * scale).tolist(), **other)


def _add_geom(body: Any, name: str, kind: Any, **fields: Any) -> Any:
    return body.add_geom(**{"name": name, "type": kind, "group": HIDDEN, "contype": 0, "conaffinity": 0, **fields})


def _add_mesh(spec: Any, body: Any, name: str, solid: Solid, placed: bool, look: dict[str, Any], own_corners: bool = False) -> None:
    corners = np.arange(3 * len(solid.faces)).reshape(-1, 3)
    if own_corners:
        # MuJoCo 3.5 finds a corner's normal by its vertex, whatever `userfacenormal` says. The twenty stay as results have seen them.
        solid = Solid(vertices=solid.vertices[solid.faces].reshape(-1, 3), faces=corners, corner_uv=solid.corner_uv)
    mesh = spec.add_mesh(name=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    mesh.uservert = solid.vertices.reshape(-1).tolist()
    mesh.userface = solid.faces.reshape(-1).tolist()
    mesh.usernormal = solid.corner_normals().reshape(-1).tolist()
    mesh.userfacenormal = corners.reshape(-1).tolist()
    if placed and solid.corner_uv is not None:
        mesh.usertexcoord = solid.corner_uv.reshape(-1).tolist()
        mesh.userfacetexcoord = corners.reshape(-1).tolist()
    _add_geom(body, name, mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **look)


def _add_look(spec: Any, name: str, pixels: NDArray[np.uint8], *, cube: bool, repeat: float = 1.0) -> None:
    side = len(pixels)
    kind = mujoco.mjtTexture.mjTEXTURE_CUBE if cube else mujoco.mjtTexture.mjTEXTURE_2D
    stored = np.concatenate([pixels] * 6) if cube else pixels
    image = spec.add_texture(name=name, type=kind, width=side, height=len(stored), nchannel=3)
    image.data = stored.tobytes()
    look = spec.add_material(name=name, texrepeat=[repeat, repeat], texuniform=repeat != 1.0, specular=0.3, shininess=0.4)
    look.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
