"""The lasso on second moments."""

cdef bint descend(
    const double *columns, const Py_ssize_t *features, Py_ssize_t n_features, Py_ssize_t d, double penalty,
    double *coef, double *pull, double tolerance, Py_ssize_t most_sweeps,
) noexcept nogil
