"""Builds the compiled kernels, which are the Cython files below src/thresher; pyproject.toml has everything else.

On x86-64 each kernel is built twice: for any such processor, and for those with AVX2 and FMA, in a directory that
`thresher._utils.kernels` lets Python search first where the processor has them. THRESHER_DEBUG=1 builds with bounds
checks, THRESHER_SANITIZE=1 also with the address and undefined-behaviour sanitizers, and neither builds twice.
"""

import os
import platform
import shutil
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

SANITIZED = os.environ.get("THRESHER_SANITIZE") == "1"
DEBUG = SANITIZED or os.environ.get("THRESHER_DEBUG") == "1"
SOURCE, GENERATED = Path("src"), Path("build", "debug" if DEBUG else "release")

# No -ffast-math: sums are taken in the order written, but for those of reductions.h, which ask for another. Numbers are
# never contracted to fused operations, so the two builds differ only in the order of those sums.
EXACT = ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]
# Random numbers come from NumPy's own library, which is linked statically.
RANDOM = Path(numpy.__file__).parent / "random" / "lib"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
# No check for None: with it, Cython refuses `self.n += 1` where the interpreter's lock is not held.
CHECKS = {"boundscheck": DEBUG, "wraparound": False, "initializedcheck": DEBUG, "nonecheck": False, "cdivision": True}


def kernel(source: Path) -> Extension:
    """The extension module of one Cython file."""
    flags = [*EXACT, *(["-O1", "-g"] if DEBUG else ["-O3", "-g0"]), *(SANITIZERS if SANITIZED else [])]
    return Extension(
        ".".join(source.relative_to(SOURCE).with_suffix("").parts),
        [str(source)],
        include_dirs=[str(SOURCE / "thresher" / "_utils"), numpy.get_include()],
        library_dirs=[str(RANDOM)],
        libraries=["npyrandom"],
        extra_compile_args=flags,
        extra_link_args=SANITIZERS if SANITIZED else ["-s"],
    )


def for_newer_processors(extension: Extension) -> Extension:
    """The same module for processors with AVX2 and FMA, from a copy of its source so that both build side by side."""
    package, _, name = extension.name.rpartition(".")
    original = Path(extension.sources[0])
    copy = original.with_name(f"{original.stem}.x86_64_v3.c")
    shutil.copyfile(original, copy)
    SOURCE.joinpath(*package.split("."), "_x86_64_v3").mkdir(exist_ok=True)  # where an editable install puts it
    return Extension(
        f"{package}._x86_64_v3.{name}",
        [str(copy)],
        include_dirs=extension.include_dirs,
        library_dirs=extension.library_dirs,
        libraries=extension.libraries,
        extra_compile_args=[*extension.extra_compile_args, "-mavx2", "-mfma"],
        extra_link_args=extension.extra_link_args,
    )


# What memory views need at run time, once instead of in every module.
SHARED = "thresher._utils._memory_views"

kernels = cythonize(
    [kernel(source) for source in sorted(SOURCE.rglob("*.pyx"))] + [Extension(SHARED, [])],
    build_dir=str(GENERATED),
    compiler_directives={"language_level": 3, **CHECKS},
    shared_utility_qualified_name=SHARED,
)
if platform.machine() in ("x86_64", "AMD64") and not DEBUG:
    kernels += [for_newer_processors(extension) for extension in kernels if "._utils." not in extension.name]

setup(ext_modules=kernels, options={"build_ext": {"parallel": os.cpu_count()}})
