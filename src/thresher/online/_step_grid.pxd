"""How certified steps are chosen: the constants, and the coarse grid they live on."""

from libc.math cimport floor, frexp, isnan, ldexp

cdef extern from *:
    """
    /* A step that is rejected shrinks at least by this factor, so that the search ends. */
    #define SHRINK 0.9
    /* A support that would move by less than this, relatively, rests: what pulls it is rounding, and the direction of
       rounding must not decide how far to look for better features. */
    #define RESTING 1e-10
    /* Steps stay below this over the largest eigenvalue on the support. Below 2 the steps of a round are contractions
       there, so rounding errors do not grow. */
    #define STABLE 1.9
    /* How far above the condition of the descent lemma a step may be: rounding, nothing more. */
    #define ROUNDING 1e-9
    /* Where steps are made for the largest tangent curvature, it is estimated again when the data weigh this much more
       than the last time, by so many products. */
    #define GROWTH 1.25
    #define N_POWER 12
    """
    const double SHRINK, RESTING, STABLE, ROUNDING, GROWTH
    const int N_POWER


cdef inline Py_ssize_t n_taken(const double *steps, Py_ssize_t n_steps) noexcept nogil:
    """How many steps a row of the table has: NaN stands for those of longer rounds."""
    while n_steps > 0 and isnan(steps[n_steps - 1]):
        n_steps -= 1
    return n_steps


cdef inline double on_grid(double eta) noexcept nogil:
    """The largest number of the form (8, 9, ..., 15) 2^k that is not above eta.

    The minimiser of a quadratic along its gradient depends so sensitively on the point that steepest descent amplifies
    rounding errors without limit. With the step rounded down to three binary digits a trajectory is a product of the
    same linear maps whatever the rounding, and the loss still falls.
    """
    cdef int exponent
    cdef double mantissa = frexp(eta * (1.0 + ROUNDING), &exponent)
    return ldexp(floor(mantissa * 16.0) / 16.0, exponent)
