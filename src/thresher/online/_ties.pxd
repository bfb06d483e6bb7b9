"""The largest of several magnitudes, where rounding must not choose between equal ones."""

from libc.math cimport INFINITY, fabs


cdef inline double largest_magnitude(const double *vector, Py_ssize_t n) noexcept nogil:
    """The largest |v_i|, infinite if some entry is not a number."""
    cdef Py_ssize_t i
    cdef double largest = 0.0
    for i in range(n):
        if not fabs(vector[i]) < INFINITY:
            return INFINITY
        largest = max(largest, fabs(vector[i]))
    return largest


cdef inline double tie_band(double cut, double largest) noexcept nogil:
    """How far from the cut a magnitude counts as tied with it: `sparsity._common.tie_band`."""
    return 1e-10 * cut + 1e-13 * largest


cdef inline double nth_largest(double *values, Py_ssize_t size, Py_ssize_t n) noexcept nogil:
    """The n-th largest of the values, which are put in another order: quickselect."""
    cdef Py_ssize_t low = 0, high = size - 1, i, j
    cdef double pivot
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:  # larger values to the left
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if n - 1 <= j:
            high = j
        elif n - 1 >= i:
            low = i
        else:
            break
    return values[n - 1]
