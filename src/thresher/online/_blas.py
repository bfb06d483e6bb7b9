"""BLAS products with a symmetric matrix, called from compiled code by address.

numba reaches gemm and gemv by itself, but not symv and symm, which read one triangle only. Addresses are passed
at run time, as an array: compiled code that had them built in could not be cached.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import get_cython_function_address, intrinsic

from thresher._utils.compile import compiled

cgutils: Any = _cgutils  # untyped

# Places in the array that `addresses` returns
SSYMV, DSYMV, DSYMM = 0, 1, 2
LOWER, RIGHT = ord("L"), ord("R")


def addresses() -> Any:
    """Where SciPy's BLAS lives in this process; for the kernels, not to be stored."""
    names = ("ssymv", "dsymv", "dsymm")
    return np.array([get_cython_function_address("scipy.linalg.cython_blas", name) for name in names], np.int64)


def _type_call(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call the Fortran routine at `address`: arrays go as pointers to their data, numbers as pointers to themselves."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        passed = []
        for kind, value in zip(signature.args[1].types, cgutils.unpack_tuple(builder, values[1]), strict=True):
            if isinstance(kind, types.Array):
                place = context.make_array(kind)(context, builder, value).data
            else:
                place = cgutils.alloca_once_value(builder, value)
            passed.append(builder.bitcast(place, pointer))
        routine = ir.FunctionType(ir.VoidType(), [pointer] * len(passed)).as_pointer()
        builder.call(builder.inttoptr(values[0], routine), passed)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), generate


_call_blas: Any = intrinsic(_type_call)


@compiled
def add_symv(blas: Any, matrix: Any, vector: Any, out: Any) -> None:
    """Out += matrix @ vector, in float64, from the upper triangle of the matrix."""
    n, one, unit = np.int32(matrix.shape[0]), np.int32(1), 1.0
    _call_blas(blas[DSYMV], (np.int8(LOWER), n, unit, matrix, n, vector, one, unit, out, one))


@compiled
def add_symv_single(blas: Any, matrix: Any, vector: Any, out: Any) -> None:
    """Out += matrix @ vector, in float32, from the upper triangle of the matrix."""
    n, one, unit = np.int32(matrix.shape[0]), np.int32(1), np.float32(1.0)
    _call_blas(blas[SSYMV], (np.int8(LOWER), n, unit, matrix, n, vector, one, unit, out, one))


@compiled
def add_symm(blas: Any, matrix: Any, block: Any, out: Any) -> None:
    """Out += matrix @ block, in float64, from the upper triangle of the matrix."""
    n, q, unit = np.int32(matrix.shape[0]), np.int32(block.shape[1]), 1.0
    # To Fortran, C-ordered arrays are their transposes: out' += block' matrix.
    _call_blas(blas[DSYMM], (np.int8(RIGHT), np.int8(LOWER), q, n, unit, matrix, n, block, q, unit, out, q))
