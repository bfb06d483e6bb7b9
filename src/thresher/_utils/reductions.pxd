"""Loops over vectors: see reductions.h."""

cdef extern from "reductions.h" nogil:
    double dot(const double *a, const double *b, Py_ssize_t n) noexcept
    double scaled_square(const double *scale, const double *a, Py_ssize_t n) noexcept
    double weighted_square(const double *weight, const double *a, Py_ssize_t n) noexcept
    double squared_distance(const double *a, const double *b, Py_ssize_t n) noexcept
    double squared_residual(const double *a, double factor, const double *b, Py_ssize_t n) noexcept
    double aim_entries(
        const double *count, const double *sum, const double *theta, double offset, const double *cols, double step,
        double *target, Py_ssize_t n
    ) noexcept
    void measure_entries(
        const double *count, const double *sum, const double *theta, double offset, const double *cols,
        const double *to, Py_ssize_t n, double *length, double *slope, double *bend
    ) noexcept
    double fit_of_entries(
        const double *count, const double *sum, const double *theta, double offset, const double *cols, Py_ssize_t n
    ) noexcept
    double largest_of(const double *a, Py_ssize_t n) noexcept
    double largest_square(const double *weight, const double *a, Py_ssize_t n) noexcept
    bint all_within(const double *a, double limit, Py_ssize_t n) noexcept
    void add_four_rows(
        const double *rows, const double *r, const double *v, double *x, double *xx, double *xy, Py_ssize_t d
    ) noexcept
    void add_multiple(double factor, const double *a, double *out, Py_ssize_t n) noexcept
