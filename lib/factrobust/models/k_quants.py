"""llama.cpp's own quantiser: matrices as its files of Q2_K to Q6_K hold them.

Its Python package exports the C function that its tool llama-quantize calls for each matrix. A
format takes a row at a time, so that the numbers are those of a file that holds all matrices in
this format (`llama-quantize --pure`). As there, a matrix whose rows are no multiple of 256 takes
another format, mostly of more bits.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factrobust.models.interface import ModelError

BLOCK = 256  # weights of a row that share a scale of scales
SMALL_BLOCK = 32  # of the other formats; rows that are no multiple stay in 16 bits
FORMATS = {2: "Q2_K", 3: "Q3_K", 4: "Q4_K", 5: "Q5_K", 6: "Q6_K"}  # by bits
# For rows that are no multiple of BLOCK (tensor_type_fallback in llama.cpp's llama-quant.cpp).
FALLBACKS = {"Q2_K": "IQ4_NL", "Q3_K": "IQ4_NL", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}

Array = NDArray[np.float32]


def format_for(bits: float, width: int) -> str:
    """The format of a matrix whose rows have so many weights; ModelError for bits without one."""
    if bits not in FORMATS:
        raise ModelError(f"llama.cpp has no K format of {bits:g} bits; give one of 2 to 6")
    if width % SMALL_BLOCK:
        return "F16"
    name = FORMATS[int(bits)]
    return FALLBACKS[name] if width % BLOCK else name


def rounded(weights: Array, bits: float) -> Array:
    """A matrix [row, weight] as a file of so many bits gives it back."""
    import gguf

    kind = gguf.GGMLQuantizationType[format_for(bits, weights.shape[1])]
    return gguf.dequantize(quantised(weights, kind), kind)


def quantised(weights: Array, kind: Any) -> NDArray[np.uint8]:
    """The bytes [row, byte] of a matrix in a format, a gguf.GGMLQuantizationType."""
    import gguf

    rows = np.ascontiguousarray(weights, dtype=np.float32)
    block, size = gguf.GGML_QUANT_SIZES[kind]
    out = np.empty((len(rows), rows.shape[1] // block * size), dtype=np.uint8)
    source = rows.ctypes.data_as(ctypes.c_void_p)
    target = out.ctypes.data_as(ctypes.c_void_p)
    importance = None  # of each weight; files made with such counts are better at few bits
    written = _quantiser()(int(kind), source, target, 0, *rows.shape, importance)
    assert written == out.nbytes
    return out


@cache
def _quantiser() -> Any:
    """ggml_quantize_chunk: of a format, weights, bytes to write, first weight, rows and width."""
    try:
        from xllamacpp import xllamacpp
    except ImportError as error:
        raise ModelError(
            "llama.cpp's quantiser is in the package xllamacpp; `pip install xllamacpp` brings it"
        ) from error
    function = ctypes.CDLL(xllamacpp.__file__).ggml_quantize_chunk
    function.restype = ctypes.c_size_t
    whole, place = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = (ctypes.c_int, place, place, whole, whole, whole, place)
    return function
