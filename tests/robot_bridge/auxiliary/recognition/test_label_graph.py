"""ECALP's graph against one that is built from scratch with dense matrices."""

from __future__ import annotations

import time

import pytest
import torch
from torch.nn import functional as F

from robot_bridge.auxiliary.recognition.ecalp_config import ECALPConfig
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.label_graph import LabelGraph

CLASSES, WIDTH = 6, 24


def stream(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Texts (C, d), images (n, d) and labels (n,): class directions in a cone around a common one, plus noise."""
    generator = torch.Generator().manual_seed(0)
    common = F.normalize(torch.randn(WIDTH, generator=generator, dtype=torch.float64), dim=0)
    classes = F.normalize(torch.randn(CLASSES, WIDTH, generator=generator, dtype=torch.float64), dim=-1)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    noise = torch.randn(count, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5
    texts = common + classes + 0.3 * torch.randn(CLASSES, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5
    return texts, common + classes[labels] + 0.9 * noise, labels


class Rebuilt:
    """The same method without anything incremental: every matrix anew for each image."""

    def __init__(self, texts: torch.Tensor, config: ECALPConfig, shots: torch.Tensor, shot_labels: torch.Tensor) -> None:
        self.texts, self.config = F.normalize(texts, dim=-1), config
        self.shots, self.shot_labels = F.normalize(shots, dim=-1), shot_labels
        self.images: list[torch.Tensor] = []
        self.start = torch.zeros(0, CLASSES, dtype=torch.float64)

    def similarities(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        images = torch.stack(self.images)
        image_weight, shot_weight = self.texts.var(dim=0), torch.ones(WIDTH, dtype=torch.float64)
        if len(self.shots) > 1:
            variance = self.shots.var(dim=0)
            shot_weight = 1 / variance.clamp_min(0.01 * float(variance.mean()))
        if not self.config.reweighting:
            image_weight, shot_weight = torch.ones_like(image_weight), torch.ones_like(shot_weight)
        among = F.normalize(image_weight * images, dim=-1) @ images.T
        among.fill_diagonal_(-torch.inf)
        return images @ self.texts.T, among, F.normalize(shot_weight * images, dim=-1) @ self.shots.T

    def matrix(self) -> torch.Tensor:
        """Normalised weights over [texts, shots, images]."""
        held, count = CLASSES + len(self.shots), len(self.images)
        weights = torch.zeros(held + count, held + count, dtype=torch.float64)
        text, among, shot = self.similarities()
        for block, first, k in ((text, 0, self.config.k_text), (shot, CLASSES, self.config.k_shot), (among, held, self.config.k_image)):
            for row, similarity in enumerate(block):
                for column in similarity.argsort(descending=True)[:k].tolist():
                    if similarity[column] > -torch.inf:
                        base = similarity[column] if self.config.similarity == "clip" else (1 + similarity[column]) / 2
                        weights[held + row, first + column] = base**self.config.gamma
        weights = weights + weights.T
        root = 1 / (weights.sum(dim=1).sqrt() + 1e-6)
        return root[:, None] * weights * root

    def add(self, feature: torch.Tensor) -> torch.Tensor:
        self.images.append(F.normalize(feature, dim=-1))
        self.start = torch.cat((self.start, torch.zeros(1, CLASSES, dtype=torch.float64)))
        matrix, held = self.matrix(), CLASSES + len(self.shots)
        fixed = torch.cat((torch.eye(CLASSES, dtype=torch.float64), F.one_hot(self.shot_labels, CLASSES).double()))
        step, source, alpha = matrix[held:, held:], matrix[held:, :held] @ fixed, self.config.alpha
        # Explicit powers: Y_n = (a A)^n Y_0 + sum_{m<n} (a A)^m (a B Y_L + (1 - a) Y_0).
        powers = [torch.linalg.matrix_power(alpha * step, power) for power in range(self.config.steps + 1)]
        labels = powers[-1] @ self.start + sum(powers[:-1]) @ (alpha * source + (1 - alpha) * self.start)
        best = labels.max(dim=1)
        self.start = F.one_hot(best.indices, CLASSES) * (best.values / self.config.memory)[:, None]
        return labels[-1]


@pytest.mark.parametrize("settings", [{}, {"similarity": "clip"}, {"reweighting": False}, {"alpha": 0.7, "steps": 4}], ids=str)
@pytest.mark.parametrize("shots", [0, 1, 12])
def test_incremental_graph_equals_one_rebuilt_with_matrix_powers_at_every_step(settings, shots):
    config = ECALPConfig(**{"k_image": 4, "k_shot": 3, **settings})
    texts, images, labels = stream(30 + shots)
    graph = LabelGraph(texts, config)
    if shots:
        graph.add_shot(images[:shots], labels[:shots])
    rebuilt = Rebuilt(texts, config, images[:shots], labels[:shots])
    for feature in images[shots:]:
        torch.testing.assert_close(graph.add(feature), rebuilt.add(feature), rtol=1e-9, atol=1e-12)
        for lists, similarities in zip((graph._to_texts, graph._to_images, graph._to_shots), rebuilt.similarities(), strict=True):
            assert neighbour_sets(lists, len(graph)) == [best(row, lists.similarities.shape[1]) for row in similarities]


def neighbour_sets(lists, count):
    rows = zip(lists.similarities[:count], lists.neighbours[:count], strict=True)
    return [set(ends[similarity > -torch.inf].tolist()) for similarity, ends in rows]


def best(similarities, k):
    order = similarities.argsort(descending=True)[:k]
    return set(order[similarities[order] > -torch.inf].tolist())


def test_shots_that_come_during_a_stream_count_like_shots_from_the_start():
    texts, images, labels = stream(40)
    late, early = LabelGraph(texts, ECALPConfig()), LabelGraph(texts, ECALPConfig())
    early.add_shot(images[:6], labels[:6])
    late.add_shot(images[:3], labels[:3])
    for feature in images[6:20]:
        early.add(feature), late.add(feature)
    late.add_shot(images[3:6], labels[3:6])
    assert neighbour_sets(early._to_shots, 14) == neighbour_sets(late._to_shots, 14)
    torch.testing.assert_close(early._to_shots.similarities[:14].sort().values, late._to_shots.similarities[:14].sort().values)


@pytest.mark.parametrize("similarity", ["shifted", "clip"])
def test_permuting_the_classes_permutes_the_predictions(similarity):
    texts, images, labels = stream(50)
    order = torch.tensor([3, 0, 5, 1, 2, 4])
    rank = torch.argsort(order)
    graph, permuted = LabelGraph(texts, ECALPConfig(similarity=similarity)), LabelGraph(texts[order], ECALPConfig(similarity=similarity))
    graph.add_shot(images[:10], labels[:10])
    permuted.add_shot(images[:10], rank[labels[:10]])
    for feature in images[10:]:
        torch.testing.assert_close(graph.add(feature)[order], permuted.add(feature), rtol=1e-9, atol=1e-12)


def hard_stream(*, cone: float = 0.0, contexts: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Texts that point beside their class, by as much as images do; `contexts` backgrounds that images have and texts have not."""
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, 64, generator=generator, dtype=torch.float64) / 8

    common, classes, labels = cone * draw(), draw(10), torch.randint(10, (300,), generator=generator)
    texts, images = common + classes + 1.5 * draw(10), common + classes[labels] + 1.5 * draw(300)
    if contexts:
        backgrounds, seen = 2.0 * draw(contexts), torch.randint(contexts, (300,), generator=generator)
        texts = torch.cat((texts, 0.05 * draw(10)), dim=1)
        images = torch.cat((images, backgrounds[seen]), dim=1)
    return texts, images, labels


def accuracy(data: tuple[torch.Tensor, torch.Tensor, torch.Tensor], **settings) -> float:
    """On the second half of a stream."""
    texts, images, labels = data
    graph = LabelGraph(texts, ECALPConfig(**settings))
    predicted = torch.tensor([int(graph.add(feature).argmax()) for feature in images])
    return float((predicted == labels)[150:].double().mean())


def zero_shot(data: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> float:
    texts, images, labels = data
    predicted = (F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T).argmax(dim=1)
    return float((predicted == labels)[150:].double().mean())


def test_the_stream_teaches():
    data = hard_stream()
    assert accuracy(data) > zero_shot(data) + 0.05


def test_all_negative_cosines_are_guarded():
    texts, images, labels = hard_stream()
    # A constant part that texts have with the other sign: every cosine falls below 0, the right class' stays nearest to it.
    texts = torch.cat((texts, texts.new_full((10, 1), 2.0)), dim=1)
    images = torch.cat((images, images.new_full((300, 1), -2.0)), dim=1)
    assert bool((F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T < 0).all())
    data = (texts, images, labels)
    assert accuracy(data) > zero_shot(data) + 0.05
    assert accuracy(data, similarity="clip") < 0.3  # an even power of negative cosines turns their order round


def test_positive_cosines_need_no_guard():
    data = hard_stream(cone=3.0)
    assert min(accuracy(data), accuracy(data, similarity="clip")) > zero_shot(data) + 0.05


def test_reweighting_matters_where_the_background_dominates():
    data = hard_stream(contexts=5)
    assert accuracy(data) > accuracy(data, reweighting=False) + 0.05


def test_reset_forgets_images_and_keeps_shots():
    texts, images, labels = stream(30)
    graph, fresh = LabelGraph(texts, ECALPConfig()), LabelGraph(texts, ECALPConfig())
    for each in (graph, fresh):
        each.add_shot(images[:5], labels[:5])
    for feature in images[5:20]:
        graph.add(feature)
    graph.reset()
    assert len(graph) == 0
    for feature in images[20:]:
        assert torch.equal(graph.add(feature), fresh.add(feature))


def test_judging_leaves_the_graph_alone():
    texts, images, _ = stream(40)
    graph = LabelGraph(texts, ECALPConfig(capacity=20))
    for feature in images[:30]:  # full: judging would have to evict
        graph.add(feature)
    first = graph.judge(images[30])
    assert torch.equal(first, graph.judge(images[30])) and len(graph) == 20
    assert torch.equal(first, graph.add(images[30]))


def test_a_full_graph_drops_the_oldest_image_of_the_most_populated_class_and_stays_consistent():
    texts, images, _ = stream(60)
    graph = LabelGraph(texts, ECALPConfig(capacity=15, k_image=4))
    for feature in images[:15]:
        graph.add(feature)
    for feature in images[15:]:
        crowd = torch.bincount(graph._classes).argmax()
        expected = min(torch.nonzero(graph._classes == crowd)[:, 0].tolist(), key=lambda slot: int(graph._arrivals[slot]))
        graph.add(feature)
        assert int(graph._arrivals.argmax()) == expected and len(graph) == 15
        among = graph._weighted @ graph._images.T
        among.fill_diagonal_(-torch.inf)
        assert neighbour_sets(graph._to_images, 15) == [best(row, 4) for row in among]


def test_labels_that_do_not_exist_are_refused():
    texts, images, _ = stream(3)
    graph = LabelGraph(texts, ECALPConfig())
    with pytest.raises(RecognitionError, match="valid: one of 0 .. 5"):
        graph.add_shot(images[:1], torch.tensor([6]))
    with pytest.raises(RecognitionError, match="C >= 2"):
        LabelGraph(texts[:1], ECALPConfig())


def test_a_frame_costs_less_than_10_ms_with_1000_images():
    generator = torch.Generator().manual_seed(0)
    graph = LabelGraph(torch.randn(16, 128, generator=generator), ECALPConfig())
    features = torch.randn(1020, 128, generator=generator)
    for feature in features[:1000]:
        graph.add(feature)
    costs = []
    for feature in features[1000:]:
        begun = time.perf_counter()
        graph.add(feature)
        costs.append(time.perf_counter() - begun)
    assert min(costs) < 0.010  # the fastest: others share this machine
