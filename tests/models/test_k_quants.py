"""llama.cpp's own quantiser, beside its own reader of the same bytes."""

import ctypes

import gguf
import numpy as np
import pytest

from factrobust.models import k_quants
from factrobust.models.interface import ModelError

pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")


def weights(width: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((6, width)).astype(np.float32)


def test_rows_that_are_no_multiple_of_256_take_the_format_that_llama_cpp_takes():
    assert [k_quants.format_for(bits, 2048) for bits in (2, 3, 6)] == ["Q2_K", "Q3_K", "Q6_K"]
    assert k_quants.format_for(4, 16) == "F16"
    assert [k_quants.format_for(bits, 640) for bits in (2, 3, 4, 5, 6)] == [
        "IQ4_NL", "IQ4_NL", "Q5_0", "Q5_1", "Q8_0",
    ]  # fmt: skip
    with pytest.raises(ModelError, match="no K format of 7 bits; give one of 2 to 6"):
        k_quants.format_for(7, 2048)


@pytest.mark.parametrize("bits", k_quants.FORMATS)
def test_what_comes_back_is_what_llama_cpp_reads(bits):
    """Its own function reads the bytes; a row does not depend on the others."""
    from xllamacpp import xllamacpp

    matrix = weights(512)
    name = k_quants.FORMATS[bits]
    stored = k_quants.quantised(matrix, gguf.GGMLQuantizationType[name])
    read = np.empty_like(matrix)
    reader = getattr(ctypes.CDLL(xllamacpp.__file__), f"dequantize_row_{name.lower()[:-1]}K")
    pointer = ctypes.c_void_p
    reader(
        stored.ctypes.data_as(pointer), read.ctypes.data_as(pointer), ctypes.c_int64(matrix.size)
    )
    found = k_quants.rounded(matrix, bits)
    assert np.allclose(found, read, atol=1e-6)
    assert np.array_equal(k_quants.rounded(matrix[2:3], bits), found[2:3])


def test_each_bit_halves_the_error_about():
    errors = [np.std(k_quants.rounded(weights(512), bits) - weights(512)) for bits in (3, 4, 5, 6)]
    ratios = np.divide(errors[:-1], errors[1:])
    assert ratios == pytest.approx([2, 2, 2], abs=0.35)
