"""What the processor can do."""

cdef extern from *:
    """
    #if defined(__x86_64__)
    #include <cpuid.h>
    /* By the instruction itself: not every compiler brings the library behind __builtin_cpu_supports. */
    static int has_avx2_and_fma(void) {
        unsigned a, b, c, d, low, high;
        const unsigned FMA = 1u << 12, XSAVE = 1u << 27, AVX = 1u << 28, AVX2 = 1u << 5;
        if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (FMA | XSAVE | AVX)) != (FMA | XSAVE | AVX))
            return 0;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & 6) != 6) /* the operating system does not keep the registers */
            return 0;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & AVX2);
    }
    #else
    static int has_avx2_and_fma(void) { return 0; }
    #endif
    """
    int has_avx2_and_fma()


HAS_AVX2_AND_FMA = has_avx2_and_fma() != 0
