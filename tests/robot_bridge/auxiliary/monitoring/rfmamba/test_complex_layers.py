"""Complex layers against complex arithmetic written out."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.rfmamba.complex_layers import (
    ComplexDepthwise,
    ComplexLayerNorm,
    ComplexLinear,
    PatchMerging,
    as_complex,
    as_real,
    complex_gelu,
    complex_silu,
)


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))


def test_a_complex_linear_layer_is_a_complex_product() -> None:
    torch.manual_seed(0)
    layer, x = ComplexLinear(3, 5), noise(2, 4, 3)
    torch.nn.init.normal_(layer.bias)
    weight, bias = torch.view_as_complex(layer.weight), torch.view_as_complex(layer.bias)
    torch.testing.assert_close(layer(x), x @ weight.T + bias)
    torch.testing.assert_close(layer(1j * x) - bias, 1j * (layer(x) - bias))  # the phase goes through
    torch.testing.assert_close(as_complex(as_real(x)), x)


def test_a_depthwise_convolution_is_that_of_complex_kernels() -> None:
    torch.manual_seed(0)
    layer, x = ComplexDepthwise(2), noise(2, 3, 4, 5, 2)
    kernel, padded = torch.view_as_complex(layer.weight), torch.zeros(2, 3, 6, 7, 2, dtype=torch.complex64)
    padded[:, :, 1:-1, 1:-1] = x
    expected = sum(kernel[:, i, j] * padded[:, :, i : i + 4, j : j + 5] for i in range(3) for j in range(3))
    torch.testing.assert_close(layer(x), expected)


def test_normalisation_and_activations_act_on_the_parts_apart() -> None:
    layer, x = ComplexLayerNorm(6), noise(4, 6)
    found = layer(x)
    torch.testing.assert_close(found.real, F.layer_norm(x.real, (6,)))
    torch.testing.assert_close(found.imag, F.layer_norm(x.imag, (6,)))
    torch.testing.assert_close(complex_gelu(x), torch.complex(F.gelu(x.real), F.gelu(x.imag)))
    torch.testing.assert_close(complex_silu(x), torch.complex(F.silu(x.real), F.silu(x.imag)))
    with torch.no_grad():
        layer.imaginary.weight.zero_()
    assert not layer(x).imag.any() and layer(x).real.any()  # each has its own


def test_patches_are_put_together_from_neighbours() -> None:
    torch.manual_seed(0)
    layer, x = PatchMerging((2, 3), 1, 4), noise(1, 2, 4, 6, 1)
    found = layer(x)
    assert found.shape == (1, 2, 2, 2, 4)
    torch.testing.assert_close(found[0, 1, 1, 0], layer.linear(x[0, 1, 2:4, 0:3].flatten()))
