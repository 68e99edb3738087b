"""scikit-learn's own installed tests, with fastml in scikit-learn's place.

    python -m tests.conformance             # the tests of everything that fastml replaces
    python -m tests.conformance --all       # the whole of scikit-learn's test suite
    python -m tests.conformance sklearn.cluster.tests.test_k_means -- -k verbose -x

What comes after ``--`` goes to pytest (``-n 4`` with pytest-xdist, say). The tests run twice
in processes of their own, first with scikit-learn alone; what fails there is not ours to fix
and is expected to fail the second time, with fastml. The second time, each test is classed by
the records of the logger ``fastml.dispatch``:

native      fastml ran, and scikit-learn did not have to stand in for it
mixed       some calls ran natively, others fell back to scikit-learn
fallback    all calls fell back
untouched   nothing that fastml replaces was called, so passing proves nothing

What counts is the number of tests passed *and* native. The command fails if a test fails that
passes with scikit-learn alone, unless ``xfail.toml`` expects it, and if an entry there no
longer holds: a test that passes after all, or that no longer exists.
"""
