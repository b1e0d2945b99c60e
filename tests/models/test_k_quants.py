"""llama.cpp's own quantiser, beside its own reader of the same bytes."""

import ctypes

import gguf
import numpy as np
import pytest

from factrobust.models import k_quants
from factrobust.models.interface import ModelError

pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")


def weights(width):
    drawn = np.random.default_rng(0).standard_normal((6, width))
    return drawn.astype(np.float32)


@pytest.mark.parametrize(
    ("width", "bits", "name"),
    [
        (2048, 2, "Q2_K"),
        (2048, 3, "Q3_K"),
        (2048, 6, "Q6_K"),
        (16, 4, "F16"),
        (640, 2, "IQ4_NL"),
        (640, 3, "IQ4_NL"),
        (640, 4, "Q5_0"),
        (640, 5, "Q5_1"),
        (640, 6, "Q8_0"),
    ],
)
def test_rows_that_are_no_multiple_of_256_take_the_format_that_llama_cpp_takes(width, bits, name):
    assert k_quants.format_for(bits, width) == name


def test_there_is_no_format_of_seven_bits():
    with pytest.raises(ModelError, match="no K format of 7 bits; give one of 2 to 6"):
        k_quants.format_for(7, 2048)


@pytest.mark.parametrize("bits", k_quants.FORMATS)
def test_what_comes_back_is_what_llama_cpp_reads(bits):
    """Its own function reads the bytes; a row does not depend on the others."""
    from xllamacpp import xllamacpp

    matrix = weights(512)
    name = k_quants.FORMATS[bits]
    stored = k_quants.quantised(matrix, gguf.GGMLQuantizationType[name])
    expected = np.empty_like(matrix)
    library = ctypes.CDLL(xllamacpp.__file__)
    read = getattr(library, f"dequantize_row_{name.lower()[:-1]}K")
    read(
        stored.ctypes.data_as(ctypes.c_void_p),
        expected.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(matrix.size),
    )
    found = k_quants.rounded(matrix, bits)
    assert np.allclose(found, expected, atol=1e-6)
    assert np.array_equal(k_quants.rounded(matrix[2:3], bits), found[2:3])


def test_each_bit_halves_the_error_about():
    matrix = weights(512)
    errors = [np.std(k_quants.rounded(matrix, bits) - matrix) for bits in (3, 4, 5, 6)]
    ratios = np.divide(errors[:-1], errors[1:])
    assert ratios == pytest.approx([2, 2, 2], abs=0.35)
