"""The image encoder: FiLM, key points, crops."""

from __future__ import annotations

import torch

from rl_core.models.film import FiLM, FiLMResNet18, SpatialSoftmax, crop, crop_size


def test_film_scales_and_shifts_by_the_condition_and_does_nothing_at_first() -> None:
    film, maps, condition = FiLM(2, 3), torch.randn(4, 3, 5, 5), torch.randn(4, 2)
    assert torch.equal(film(maps, condition), maps)
    with torch.no_grad():
        film.linear.bias.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0, 0.5]))
    out = film(maps, condition)
    torch.testing.assert_close(out[:, 0], 2 * maps[:, 0])
    torch.testing.assert_close(out[:, 1], maps[:, 1])
    torch.testing.assert_close(out[:, 2], maps[:, 2] + 0.5)


def test_a_key_point_is_where_its_map_is_high() -> None:
    softmax = SpatialSoftmax(1, 1)
    with torch.no_grad():
        softmax.maps.weight.fill_(1.0)
        softmax.maps.bias.zero_()
    maps = torch.zeros(1, 1, 5, 9)
    maps[0, 0, 1, 6] = 50.0  # row 1 of 5, column 6 of 9
    torch.testing.assert_close(softmax(maps), torch.tensor([[0.5, -0.5]]))


def test_features_depend_on_picture_and_instruction_and_on_no_other_row() -> None:
    torch.manual_seed(0)
    net = FiLMResNet18(3, 4, width=8, keypoints=8, outputs=10).eval()
    for block in net.blocks:
        torch.nn.init.normal_(block.film.linear.weight, std=0.3)  # as after some training
    pictures = torch.randint(0, 256, (3, 64, 48, 3), dtype=torch.uint8)
    condition = torch.randn(3, 4)
    with torch.no_grad():
        features = net(pictures, condition)
        assert features.shape == (3, 10)
        torch.testing.assert_close(net(pictures[1:2], condition[1:2]), features[1:2], rtol=1e-4, atol=1e-5)
        assert not torch.allclose(net(pictures, condition.roll(1, 0)), features, atol=1e-3)
        assert not torch.allclose(net(pictures.roll(1, 0), condition), features, atol=1e-3)
    assert sum(len(p) > 0 for p in net.parameters()) > 60  # 18 layers of weights and their norms


def test_the_default_has_as_many_convolutions_as_resnet_18() -> None:
    net = FiLMResNet18(3, 4)
    convolutions = [m for m in net.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(convolutions) == 17 + 3 + 1  # ResNet-18's 17, its 3 shortcuts, and the key points' maps
    assert net.keypoints.maps.in_channels == 512


def test_crops_are_from_the_middle_when_acting_and_one_place_a_context_when_training() -> None:
    pictures = torch.arange(128 * 128, dtype=torch.int64).reshape(1, 1, 128, 128, 1).expand(6, 5, -1, -1, -1)
    assert crop_size((128, 128), 0.90625) == (116, 116)
    middle = crop(pictures, 0.90625)
    assert middle.shape == (6, 5, 116, 116, 1) and middle[0, 0, 0, 0, 0] == 6 * 128 + 6
    random = crop(pictures, 0.90625, torch.Generator().manual_seed(0))
    corners = random[:, :, 0, 0, 0]
    assert (corners == corners[:, :1]).all() and len(corners[:, 0].unique()) > 3
    assert torch.equal(crop(pictures, 0.90625, torch.Generator().manual_seed(0)), random)
    assert torch.equal(crop(pictures, 1.0, torch.Generator().manual_seed(0)), pictures)
