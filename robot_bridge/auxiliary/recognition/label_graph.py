"""ECALP's graph: class texts, labelled shots and every image seen so far; labels flow along its edges (arXiv 2412.18303).

Edges of an image: to its 3 nearest texts, 8 nearest images, 8 nearest shots; texts and shots have only the edges that images have to
them. The similarity (unit-norm features) depends on its context, and an edge weighs s^gamma:

    image - text    s = cos(x_i, t_c)
    image - image   s_ij = cos(omega * x_i, x_j),  omega = Var_c(t_c) by dimension
    image - shot    s_ij = cos(omega * x_i, l_j),  omega = 1 / Var_j(l_j) by dimension
    W <- W + W^T,   D = row sums,   Wt = D^-1/2 W D^-1/2
    Y_u <- a Wt_u [Y_L; Y_u] + (1 - a) Y0,  a few times, with the rows of texts and shots held

A new image costs its own similarities, O(N d), and the entries it takes in the lists of others; no old edge is computed again.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.recognition.ecalp_config import ECALPConfig
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.nearest import NearestLists

_ROOT_EPS = 1e-6
_LEAST_VARIANCE = 1e-2
"""Of the mean over dimensions: with few shots a variance is near 0 by chance, and its inverse would be the only thing that counts."""


class LabelGraph:
    """Images one by one in, class scores out; see the module.

    Args:
        texts: class embeddings (C, d), at least two; normalised here. Their dtype is the graph's.
        config: numbers of neighbours, gamma, steps.

    Raises:
        RecognitionError: fewer than two classes.
    """

    def __init__(self, texts: Tensor, config: ECALPConfig) -> None:
        if texts.ndim != 2 or len(texts) < 2:
            raise RecognitionError(f"class embeddings of shape {tuple(texts.shape)}; valid: (C, d) with C >= 2")
        self.config = config
        self._texts = F.normalize(texts, dim=-1)
        width, capacity = texts.shape[1], config.capacity
        self._image_weight = self._unit(self._texts.var(dim=0)) if config.reweighting else texts.new_ones(width)
        self._shots, self._shot_labels = texts.new_zeros(0, width), torch.zeros(0, dtype=torch.long)
        self._images, self._weighted = texts.new_zeros(capacity, width), texts.new_zeros(capacity, width)
        self._to_texts = NearestLists(capacity, config.k_text, texts.dtype)
        self._to_images = NearestLists(capacity, config.k_image, texts.dtype)
        self._to_shots = NearestLists(capacity, config.k_shot, texts.dtype)
        self._classes = torch.zeros(capacity, dtype=torch.long)
        self._beliefs = texts.new_zeros(capacity)
        self._arrivals = torch.zeros(capacity, dtype=torch.long)
        self._arrived = self._count = 0

    def __len__(self) -> int:
        """Images held."""
        return self._count

    @property
    def shots(self) -> tuple[Tensor, Tensor]:
        """Features (F, d) and classes (F,) of the labelled shots."""
        return self._shots, self._shot_labels

    def add_shot(self, features: Tensor, labels: Tensor) -> None:
        """Adds labelled images (F, d) with classes (F,). omega depends on all shots, so the images' edges to shots are made anew.

        Raises:
            RecognitionError: a class that does not exist.
        """
        if len(labels) != len(features) or bool(((labels < 0) | (labels >= len(self._texts))).any()):
            raise RecognitionError(f"{len(features)} shots with labels {labels.tolist()}; valid: one of 0 .. {len(self._texts) - 1} each")
        self._shots = torch.cat((self._shots, F.normalize(features.to(self._shots), dim=-1)))
        self._shot_labels = torch.cat((self._shot_labels, labels))
        self._to_shots.assign(torch.arange(self._count), self._shot_similarities(self._images[: self._count]))

    def reset(self) -> None:
        """Forgets the images; shots stay."""
        self._arrived = self._count = 0
        for lists in (self._to_texts, self._to_images, self._to_shots):
            lists.clear()

    def add(self, feature: Tensor) -> Tensor:
        """Takes an image in, lets labels flow, and remembers what every image now looks like.

        Args:
            feature: (d,), any length.

        Returns:
            (C,): how much of each class's label reached it; not negative.
        """
        feature = F.normalize(feature.to(self._texts), dim=-1)
        slot = self._free_slot()
        self._images[slot] = feature
        self._weighted[slot] = F.normalize(self._image_weight * feature, dim=-1)
        self._arrivals[slot], self._beliefs[slot] = self._arrived, 0.0
        self._arrived += 1
        mine = torch.tensor([slot])
        self._to_texts.assign(mine, (self._texts @ feature)[None])
        self._to_shots.assign(mine, self._shot_similarities(feature[None]))
        others = self._weighted[: self._count] @ feature
        others[slot] = -torch.inf
        self._to_images.offer(slot, others)
        self._to_images.assign(mine, self._image_similarities(mine))
        labels = self.propagate()
        best = labels.max(dim=1)
        self._beliefs[: self._count], self._classes[: self._count] = best.values / self.config.memory, best.indices
        return labels[slot]

    def judge(self, feature: Tensor) -> Tensor:
        """What `add` would give (C,), without taking the image in."""
        return copy.deepcopy(self).add(feature)

    def propagate(self) -> Tensor:
        """Labels (N, C) of all images after the configured steps, from what is remembered of them."""
        count, classes = self._count, len(self._texts)
        to_text, text = self._edges(self._to_texts)
        to_image, image = self._edges(self._to_images)
        to_shot, shot = self._edges(self._to_shots)
        degree = to_text.sum(1) + to_image.sum(1) + to_shot.sum(1)
        degree = degree.index_add(0, image.flatten(), to_image.flatten())
        root, text_root = _inverse_root(degree), _inverse_root(degree.new_zeros(classes).index_add(0, text.flatten(), to_text.flatten()))
        # What comes from texts and shots is the same in every step.
        held = degree.new_zeros(count, classes).scatter_add(1, text, to_text * text_root[text])
        if len(self._shots):
            shot_root = _inverse_root(degree.new_zeros(len(self._shots)).index_add(0, shot.flatten(), to_shot.flatten()))
            held = held.scatter_add(1, self._shot_labels[shot], to_shot * shot_root[shot])
        held = root[:, None] * held
        start = degree.new_zeros(count, classes)
        start[torch.arange(count), self._classes[:count]] = self._beliefs[:count]
        labels, alpha = start, self.config.alpha
        for _ in range(self.config.steps):
            sent = root[:, None] * labels
            received = (to_image[:, :, None] * sent[image]).sum(dim=1)
            received = received.index_add(0, image.flatten(), (to_image[:, :, None] * sent[:, None, :]).flatten(0, 1))
            labels = alpha * (held + root[:, None] * received) + (1 - alpha) * start
        return labels

    def _edges(self, lists: NearestLists) -> tuple[Tensor, Tensor]:
        """Weights and ends (N, k) of the edges that images have; an empty place has weight 0."""
        similarity, ends = lists.similarities[: self._count], lists.neighbours[: self._count]
        base = similarity if self.config.similarity == "clip" else (1 + similarity) / 2
        return torch.where(similarity > -torch.inf, base**self.config.gamma, 0.0), ends

    def _image_similarities(self, slots: Tensor) -> Tensor:
        found = self._weighted[slots] @ self._images[: self._count].T
        found[torch.arange(len(slots)), slots] = -torch.inf
        return found

    def _shot_similarities(self, images: Tensor) -> Tensor:
        weight = images.new_ones(images.shape[1])
        if self.config.reweighting and len(self._shots) > 1:
            variance = self._shots.var(dim=0)
            weight = self._unit(1 / variance.clamp_min(_LEAST_VARIANCE * float(variance.mean()) + torch.finfo(variance.dtype).tiny))
        return F.normalize(weight * images, dim=-1) @ self._shots.T

    def _free_slot(self) -> int:
        """A place for one more image; at capacity that of the oldest image of the most populated class."""
        if self._count < self.config.capacity:
            self._count += 1
            return self._count - 1
        crowd = self._classes == torch.bincount(self._classes).argmax()
        slot = int(torch.where(crowd, self._arrivals, self._arrived).argmin())
        losing = self._to_images.holding(slot)
        similarities = self._image_similarities(losing)
        similarities[:, slot] = -torch.inf
        self._to_images.assign(losing, similarities)
        return slot

    @staticmethod
    def _unit(weight: Tensor) -> Tensor:
        """Of length 1; all ones where there is nothing to tell dimensions apart."""
        length = weight.norm()
        return weight / length if bool(torch.isfinite(length)) and float(length) > 0 else torch.ones_like(weight)


def _inverse_root(degree: Tensor) -> Tensor:
    return 1 / (degree.sqrt() + _ROOT_EPS)
