"""One table of compiled families, one set of flags."""

import os
import sys
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

# Compiled module -> its folder in csrc. The binding is csrc/<folder>/_<module>.pyx.
FAMILIES = {
    "runtime": "common",
    "als": "als",
    "covariance": "covariance",
    "decision": "decision",
    "eigen": "eigen",
    "forest": "forest",
    "rows": "rows",
    "cholesky": "cholesky",
    "gemm": "gemm",
    "jit": "jit",
    "kdtree": "kdtree",
    "kernel_kmeans": "kernel_kmeans",
    "kmeans": "kmeans",
    "kmedians": "kmedians",
    "likelihood": "likelihood",
    "linear_svm": "linear_svm",
    "neighbors": "neighbors",
    "nmf": "nmf",
    "pairwise": "pairwise",
    "power": "power",
    "projection": "projection",
    "ranking": "ranking",
    "scaling": "scaling",
    "sgd_factors": "sgd_factors",
    "smo": "smo",
    "sketch": "sketch",
    "strings": "strings",
    "symmetric": "symmetric",
    "trees": "trees",
    "votes": "votes",
}

# Folders whose results equal scikit-learn's bit for bit: no fused multiply-adds, which round once
# where its builds round twice.
EXACT = ("trees",)

if sys.platform == "win32":
    compile_args, link_args = ["/O2", "/std:c++17"], []
else:
    compile_args = ["-O3", "-std=c++17", "-fvisibility=hidden", "-fno-math-errno", "-fopenmp-simd"]
    # GCC takes the undefined vectors inside its own intrinsics for ours.
    compile_args += ["-Wno-maybe-uninitialized", "-Wno-uninitialized"]
    link_args = ["-pthread"]
    if os.environ.get("FASTML_SANITIZE"):
        sanitize = "-fsanitize=" + os.environ["FASTML_SANITIZE"]
        compile_args += ["-g", "-O1", "-fno-omit-frame-pointer", "-DFML_INSTRUMENTED", sanitize]
        link_args += [sanitize]
    else:
        link_args += ["-Wl,-s"] if sys.platform == "linux" else []


def extension(module, folder):
    exact = ["-ffp-contract=off"] if folder in EXACT and sys.platform != "win32" else []
    return Extension(
        f"fastml._native.{module}",
        sources=[f"csrc/{folder}/_{module}.pyx", *glob(f"csrc/{folder}/*.cpp")],
        depends=glob("csrc/**/*.h", recursive=True) + glob("csrc/**/*.pxd", recursive=True),
        include_dirs=["csrc"],
        extra_compile_args=compile_args + exact,
        extra_link_args=link_args,
        language="c++",
    )


setup(
    ext_modules=cythonize(
        [extension(*item) for item in FAMILIES.items()],
        build_dir="build/cython",
        include_path=["."],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "freethreading_compatible": True,
        },
    ),
    options={"build_ext": {"parallel": os.cpu_count()}},
)
