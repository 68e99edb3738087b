"""One table of compiled families, one set of flags."""

import os
import sys
from glob import glob
from hashlib import blake2b
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

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
    compile_args += ["-MMD"]  # what an object is made of, beside it
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


def fingerprint(obj):
    """Of all that an object was made of, as the compiler has told; None if it has not been made."""
    try:
        made_of = Path(obj).with_suffix(".d").read_text().partition(":")[2]
        files = made_of.replace("\\\n", " ").split()
        return blake2b(b"".join(Path(file).read_bytes() for file in files)).hexdigest()
    except OSError:
        return None


class BuildWhatChanged(build_ext):
    """Keeps objects from one build to the next, whether in place, editable or for a wheel.

    pip builds with a Cython of its own each time, so that what this writes is always new: contents
    count, and not dates. They are in build, or in the folder that FASTML_OBJECTS names, which may
    be that of another copy of the same sources.
    """

    def build_extensions(self):
        kind = [compile_args, sys.implementation.cache_tag]
        kind += [os.environ.get(name) for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS")]
        name = f"objects-{blake2b(repr(kind).encode(), digest_size=4).hexdigest()}"
        self.build_temp = os.path.join(os.environ.get("FASTML_OBJECTS", "build"), name)
        compile_one = getattr(self.compiler, "_compile", None)  # Microsoft's has none

        def compile_changed(obj, *args):
            made = Path(obj).with_suffix(".made")
            known = made.read_text() if made.exists() and os.path.exists(obj) else ""
            if known != fingerprint(obj):
                compile_one(obj, *args)
                made.write_text(fingerprint(obj) or "")

        if compile_one:
            self.compiler._compile = compile_changed
        super().build_extensions()


setup(
    cmdclass={"build_ext": BuildWhatChanged},
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
