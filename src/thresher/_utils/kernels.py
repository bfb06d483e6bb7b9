"""Which build of the compiled kernels this processor gets."""

import os

from thresher._utils._processor import HAS_AVX2_AND_FMA


def kernel_path(path: list[str]) -> list[str]:
    """Where Python looks for the modules of a package: on newer processors first among the kernels built for them.

    Both builds give the same results up to rounding, and each the same bits on all processors that it runs on.
    THRESHER_KERNELS=baseline in the environment chooses the build for any processor.
    """
    if not HAS_AVX2_AND_FMA or os.environ.get("THRESHER_KERNELS") == "baseline":
        return path
    return [os.path.join(place, "_x86_64_v3") for place in path] + path
