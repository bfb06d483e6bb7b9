/* Sums that may be taken in another order than written, hence in vector registers.

   The order is fixed when the file is compiled, so results stay reproducible on one kind of processor. */

#ifndef THRESHER_REDUCTIONS_H
#define THRESHER_REDUCTIONS_H

#include <stddef.h>

/* sum a b, in eight sums: with fewer, each addition waits for the one before it */
static inline double dot(const double *a, const double *b, ptrdiff_t n) {
    double sums[8] = {0.0}, rest = 0.0;
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        rest += a[i] * b[i];
    return rest + (((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])));
}

/* sum (scale a)^2 */
static inline double scaled_square(const double *scale, const double *a, ptrdiff_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (ptrdiff_t i = 0; i < n; i++)
        total += (scale[i] * a[i]) * (scale[i] * a[i]);
    return total;
}

/* sum weight a^2 */
static inline double weighted_square(const double *weight, const double *a, ptrdiff_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (ptrdiff_t i = 0; i < n; i++)
        total += weight[i] * (a[i] * a[i]);
    return total;
}

/* sum (a - b)^2 */
static inline double squared_distance(const double *a, const double *b, ptrdiff_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (ptrdiff_t i = 0; i < n; i++)
        total += (a[i] - b[i]) * (a[i] - b[i]);
    return total;
}

/* sum (a - factor b)^2 */
static inline double squared_residual(const double *a, double factor, const double *b, ptrdiff_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (ptrdiff_t i = 0; i < n; i++)
        total += (a[i] - factor * b[i]) * (a[i] - factor * b[i]);
    return total;
}

/* Of a row of a matrix of which entries were observed: target = theta - step (count (theta + offset + cols) - sum).
   Returns sum target^2 */
static inline double aim_entries(const double *count, const double *sum, const double *theta, double offset,
                                 const double *cols, double step, double *restrict target, ptrdiff_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (ptrdiff_t i = 0; i < n; i++) {
        double value = theta[i] - step * (count[i] * (theta[i] + (offset + cols[i])) - sum[i]);
        target[i] = value;
        total += value * value;
    }
    return total;
}

/* For move = to - theta: adds sum move^2, sum move (count (theta + offset + cols) - sum) and sum count move^2 */
static inline void measure_entries(const double *count, const double *sum, const double *theta, double offset,
                                   const double *cols, const double *to, ptrdiff_t n, double *length, double *slope,
                                   double *bend) {
    double squares = 0.0, products = 0.0, weighted = 0.0;
#pragma omp simd reduction(+ : squares, products, weighted)
    for (ptrdiff_t i = 0; i < n; i++) {
        double move = to[i] - theta[i];
        squares += move * move;
        products += move * (count[i] * (theta[i] + (offset + cols[i])) - sum[i]);
        weighted += count[i] * (move * move);
    }
    *length += squares;
    *slope += products;
    *bend += weighted;
}

/* sum fitted (count fitted - 2 sum) for fitted = theta + offset + cols */
static inline double fit_of_entries(const double *count, const double *sum, const double *theta, double offset,
                                    const double *cols, ptrdiff_t n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (ptrdiff_t i = 0; i < n; i++) {
        double fitted = theta[i] + (offset + cols[i]);
        total += fitted * (count[i] * fitted - 2.0 * sum[i]);
    }
    return total;
}

/* The largest of n > 0 numbers */
static inline double largest_of(const double *a, ptrdiff_t n) {
    double top = a[0];
#pragma omp simd reduction(max : top)
    for (ptrdiff_t i = 0; i < n; i++)
        top = a[i] > top ? a[i] : top;
    return top;
}

/* The largest of weight a^2, at least zero */
static inline double largest_square(const double *weight, const double *a, ptrdiff_t n) {
    double top = 0.0;
#pragma omp simd reduction(max : top)
    for (ptrdiff_t i = 0; i < n; i++) {
        double value = weight[i] * (a[i] * a[i]);
        top = value > top ? value : top;
    }
    return top;
}

/* Whether every number is one, and of size at most `limit` */
static inline int all_within(const double *a, double limit, ptrdiff_t n) {
    double beyond = 0.0;
#pragma omp simd reduction(+ : beyond)
    for (ptrdiff_t i = 0; i < n; i++)
        beyond += a[i] <= limit && a[i] >= -limit ? 0.0 : 1.0;
    return beyond == 0.0;
}

/* out += factor a, in the order written */
static inline void add_multiple(double factor, const double *restrict a, double *restrict out, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] += factor * a[i];
}

/* What four rows of d columns, with roots r of their weights and responses v, add to sums over all rows. Four at a
   time, so that the sums are read and written a quarter as often. */
static inline void add_four_rows(const double *restrict rows, const double *r, const double *v, double *restrict x,
                                 double *restrict xx, double *restrict xy, ptrdiff_t d) {
    const double *a = rows, *b = rows + d, *c = rows + 2 * d, *e = rows + 3 * d;
#pragma omp simd
    for (ptrdiff_t j = 0; j < d; j++) {
        x[j] += (r[0] * a[j] + r[1] * b[j]) + (r[2] * c[j] + r[3] * e[j]);
        xx[j] += (a[j] * a[j] + b[j] * b[j]) + (c[j] * c[j] + e[j] * e[j]);
        xy[j] += (v[0] * a[j] + v[1] * b[j]) + (v[2] * c[j] + v[3] * e[j]);
    }
}

#endif
