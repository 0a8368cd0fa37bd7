"""The recipe of the small VLM: pictures of parts and what is written on them -> a bundle. Measures what it can do afterwards."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.vlm.backbone import Backbone
from robot_bridge.auxiliary.vlm.contrastive import ContrastiveConfig, train
from robot_bridge.auxiliary.vlm.feature_cache import image_cache, map_cache
from robot_bridge.auxiliary.vlm.interface import VLM
from robot_bridge.auxiliary.vlm.small import SmallVLM, SmallVLMConfig
from robot_bridge.auxiliary.vlm.words import WordTokenizer

Say = Callable[[str], None]
TEMPLATE = "a photo of a {}."
"""Prompt of zero-shot figures; the name takes the place of the braces."""


@dataclass(frozen=True, kw_only=True)
class VLMRecipe:
    """How the small VLM is made."""

    held_out: tuple[str, ...] = ()
    """Classes that are in no training picture, not even beside another object; their words may occur in other names."""
    model: SmallVLMConfig = field(default_factory=SmallVLMConfig)
    """Sizes of the model."""
    training: ContrastiveConfig = field(default_factory=ContrastiveConfig)
    """How it is trained."""


def make_vlm(
    out: str | Path,
    *,
    data: str | Path,
    held_out: Sequence[str] = (),
    epochs: int = ContrastiveConfig.epochs,
    batch: int = ContrastiveConfig.batch,
    seed: int = 0,
    say: Say = print,
) -> dict[str, float]:
    """Trains the small VLM on a folder of captioned pictures and writes its bundle.

    Objects are split: 5 % of each class' objects are left out of training and give the figures.

    Args:
        out: folder of the bundle; maps of the backbone are kept beside it, in `OUT.maps`.
        data: folder of shards with captions, what `armstack aux data` writes.
        held_out: classes left out of training altogether.
        epochs: passes over the pictures.
        batch: pairs in a batch.
        seed: of the split, of weights and of batches.
        say: told how far it is.

    Returns:
        Figures of `zero_shot_figures` on the objects that were left out.

    Raises:
        ImageDataError: the folder cannot be read, or holds no captions.
    """
    out = Path(out)
    pictures = read_images(data)
    recipe = VLMRecipe(held_out=tuple(held_out), training=ContrastiveConfig(epochs=epochs, batch=batch))
    learned, judged = pictures.split((0.95, 0.05), seed)
    model = train_vlm(learned, recipe, seed, words=pictures.captions, cache=out.with_name(f"{out.name}.maps"), say=say)
    figures = zero_shot_figures(model, judged, recipe.held_out)
    save_vlm(model, out, learned, recipe, seed, figures)
    return figures


def train_vlm(
    data: ImageData,
    recipe: VLMRecipe,
    seed: int,
    *,
    words: Sequence[str] = (),
    backbone: Backbone | None = None,
    cache: Path | None = None,
    say: Say = print,
) -> SmallVLM:
    """Trains a model on captioned pictures.

    Args:
        data: with captions; those of the project's own parts or any other.
        recipe: see `VLMRecipe`.
        seed: of weights and batches.
        words: texts whose words the vocabulary shall hold beside those of the captions and classes.
        backbone: None = EfficientNet-Lite0.
        cache: where its maps are kept.
        say: told how far it is.

    Raises:
        ImageDataError: no captions, or nothing left without the held-out classes.
    """
    if not data.captions:
        raise ImageDataError("the small VLM is trained on captions; these pictures have none; valid: what `armstack aux data` writes")
    kept = without(data, recipe.held_out)
    torch.manual_seed(seed)
    texts = sentences(kept)
    known = [*words, *data.classes, *(text for row in texts for text in row)]
    vocabulary = WordTokenizer.from_texts(known, recipe.model.context_length).vocabulary
    model = SmallVLM(recipe.model, vocabulary, backbone)
    say(f"{len(kept)} pictures, {len(vocabulary)} words; working out maps that are not kept yet")
    maps = map_cache(model.backbone, cache).features(kept.frames, lambda count: say(f"{count} pictures through the backbone"))["maps"]

    def told(step: int, steps: int, metrics: dict[str, float]) -> None:
        if step % max(steps // 10, 1) == 0:
            say(f"step {step}/{steps}  loss/global {metrics['loss/global']:.3f}  loss/local {metrics['loss/local']:.3f}")

    train(model, maps, texts, recipe.training, seed, told)
    return model


def without(data: ImageData, classes: Sequence[str]) -> ImageData:
    """Pictures that show none of those classes, neither as their object nor beside it (factor `beside`).

    Raises:
        ImageDataError: a class that there is none of, or no picture left.
    """
    unknown = [name for name in classes if name not in data.classes]
    shown = np.isin(data.labels, [index for index, name in enumerate(data.classes) if name in classes])
    for row, names in enumerate(data.factors.get("beside", ())):
        shown[row] |= any(name in str(names).split(" and ") for name in classes)
    if unknown or shown.all():
        raise ImageDataError(f"held out {list(classes)}: {unknown or 'no picture left'}; classes: {list(data.classes)}")
    return data.select(~shown)


def sentences(data: ImageData) -> list[list[str]]:
    """Sentences of each picture, of which training draws: its caption twice, the name alone, and the name with its colour."""
    colours = data.factors.get("colour", np.full(len(data), ""))
    found = []
    for caption, label, colour in zip(data.captions, data.labels, colours, strict=True):
        name = data.classes[label]
        found.append([caption, caption, TEMPLATE.format(name), f"{colour} {name}."])
    return found


def data_fingerprint(data: ImageData) -> str:
    """sha256 of pictures and captions."""
    digest = hashlib.sha256(np.ascontiguousarray(data.frames).tobytes())
    digest.update("\n".join(data.captions).encode())
    return digest.hexdigest()


def zero_shot_figures(vlm: VLM, data: ImageData, held_out: Sequence[str] = (), cache: Path | None = None) -> dict[str, float]:
    """What the model says of pictures from names alone; chance is one over the number of names.

    Returns:
        `accuracy` of known classes among all names; with `held_out` also `accuracy/held_out` among all names and
        `accuracy/held_out_alone` among the held-out names; where masks are known `accuracy/local`, of the local tokens whose middle lies
        on the object, among all names.
    """
    features = image_cache(vlm, cache, tokens=data.segmentation is not None).features(data.frames)
    with torch.no_grad():
        text = F.normalize(vlm.encode_text([TEMPLATE.format(name) for name in data.classes]), dim=-1)
    labels = torch.from_numpy(data.labels)
    scores = F.normalize(torch.from_numpy(features["image"]), dim=-1) @ text.T
    new = torch.tensor([name in held_out for name in data.classes])
    known = ~new[labels]
    figures = {"accuracy": _share(scores, labels, known)}
    if held_out:
        alone = scores.masked_fill(~new, -torch.inf)
        figures |= {"accuracy/held_out": _share(scores, labels, ~known), "accuracy/held_out_alone": _share(alone, labels, ~known)}
    if data.segmentation is not None:
        rows, places = _on_object(data.segmentation, features["tokens"].shape[1])
        inside = known[rows]
        local = F.normalize(torch.from_numpy(features["tokens"][rows, places]), dim=-1) @ text.T
        figures["accuracy/local"] = _share(local, labels[rows], inside)
    return figures


def save_vlm(model: SmallVLM, folder: Path, data: ImageData, recipe: VLMRecipe, seed: int, metrics: Mapping[str, Any]) -> Path:
    """Writes the bundle, with the recipe in its metrics."""
    facts = {"recipe": {**asdict(recipe.training), "held_out": list(recipe.held_out), "seed": seed}, **metrics}
    return model.save(folder, data_fingerprint=data_fingerprint(data), metrics=facts)


def _share(scores: Tensor, labels: Tensor, rows: Tensor) -> float:
    return float((scores[rows].argmax(dim=1) == labels[rows]).float().mean())


def _on_object(masks: NDArray[np.uint8], tokens: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(picture, token) of the tokens whose middle lies on the labelled object."""
    grid, (height, width) = round(tokens**0.5), masks.shape[1:]
    rows, columns = ((np.arange(grid) + 0.5) * height / grid).astype(int), ((np.arange(grid) + 0.5) * width / grid).astype(int)
    on = np.isin(masks[:, rows][:, :, columns], (1, 3)).reshape(len(masks), -1)
    picture, place = np.nonzero(on)
    return picture, place
