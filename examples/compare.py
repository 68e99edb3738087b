"""Run a script with scikit-learn, run it again with fastml, and compare.

    python examples/compare.py SCRIPT [ARGUMENTS ...]

Prints what the script prints, both times, and whether the outputs agree: the same words, and
numbers within a thousandth. Ends with status 1 if they do not. The script runs in its own folder.
"""

import math
import os
import subprocess
import sys
import time


def run(*command, folder=None):
    """Output and seconds of a Python process."""
    # OPENBLAS_*: settings that pin old kernels would slow scikit-learn down more than fastml.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=True,
    )
    return done.stdout, time.perf_counter() - start


def agree(one, other):
    """Whether two outputs say the same, up to rounding in the numbers."""
    one, other = one.split(), other.split()
    return len(one) == len(other) and all(map(same, one, other))


def same(word, other):
    try:
        numbers = float(word.strip("%,;:()")), float(other.strip("%,;:()"))
    except ValueError:
        return word == other
    return math.isclose(*numbers, rel_tol=1e-3, abs_tol=1e-6)


def main(command):
    if not command:
        sys.exit(__doc__)
    folder, script = os.path.split(os.path.abspath(command[0]))
    command = [script, *command[1:]]
    run("-c", "import fastml.cluster", folder=folder)  # from here on, files are in memory
    stock, stock_seconds = run(*command, folder=folder)
    print(stock)
    fast, fast_seconds = run("-m", "fastml", *command, folder=folder)
    print(f"scikit-learn  {stock_seconds:6.2f} s")
    print(f"fastml        {fast_seconds:6.2f} s   {stock_seconds / fast_seconds:.2f} times as fast")
    if agree(stock, fast):
        print("The results agree.")
        return 0
    print(f"The results differ. With fastml the script printed:\n\n{fast}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
