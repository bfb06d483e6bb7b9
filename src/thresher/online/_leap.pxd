"""A whole round of short steps as one polynomial."""

from thresher.online._certificate cimport Certificate

cdef bint leap(Certificate certificate, double eta, Py_ssize_t n_steps) noexcept nogil
