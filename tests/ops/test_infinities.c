/* test_infinities.c - infinities affect only the elements that the formula says: lanes, rows and channels that an
 * implementation pads or computes twice must not multiply them by 0, which would give NaN.
 *
 * Gradients of a convolution's weights, dw[k, c, r, s] = sum of dy[n, k, p, q] * x[n, c, p + r, q + s], with every
 * implementation. All numbers are positive, so that correct sums are finite or +infinity. An implementation that
 * inherently spreads infinities may do so only among the taps of the affected channels. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/choice.h"
#include "support/as_gpu.h"
#include "support/values.h"

typedef struct extent {
    int64_t images, in_channels, out_channels, kernel, width;
} extent;

/* Widths that are not multiples of any vector, shorter than one, and longer than several; and dy of whole vectors. */
static const extent extents[] = {{2, 1, 3, 3, 28},  {1, 2, 2, 3, 7},   {3, 3, 5, 1, 5},   {1, 1, 1, 2, 4},
                                 {2, 17, 33, 3, 9}, {1, 2, 17, 5, 37}, {2, 19, 35, 1, 6}, {2, 1, 2, 3, 18}};

static kn_tensor *ones_but(int64_t infinite, int ndim, const int64_t *shape, kn_dtype dtype, bool requires_grad)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = i == infinite ? INFINITY : 1;
    kn_tensor *tensor = tensor_of_doubles(values, ndim, shape, dtype, requires_grad);
    free(values);
    CHECK_TENSOR(tensor);
    return tensor;
}

/* Is the infinite element in channel k of dy or channel c of x? */
static bool shares_channel(const extent *e, int64_t of_x, int64_t of_dy, int64_t k, int64_t c)
{
    int64_t out = e->width - e->kernel + 1;
    return of_dy >= 0 ? of_dy / (out * out) % e->out_channels == k : of_x / (e->width * e->width) % e->in_channels == c;
}

/* Does dw[k, c, r, s] sum over the infinite element of x or of dy (-1: none)? */
static bool reaches_infinity(const extent *e, int64_t of_x, int64_t of_dy, int64_t k, int64_t c, int64_t r, int64_t s)
{
    int64_t out = e->width - e->kernel + 1;
    int64_t q = of_x % e->width - s, p = of_x / e->width % e->width - r;
    return shares_channel(e, of_x, of_dy, k, c) && (of_dy >= 0 || (p >= 0 && p < out && q >= 0 && q < out));
}

static bool is_right(const kn_implementation *row, double value, double right, bool shares)
{
    if (!row->spreads_infinities)
        return value == right;
    return shares ? !isinf(right) || !isfinite(value) : fabs(value - right) <= 1e-5 * right;
}

static void check_weights(const extent *e, kn_dtype dtype, int64_t of_x, int64_t of_dy, const kn_implementation *row)
{
    int64_t out = e->width - e->kernel + 1, taps = e->in_channels * e->kernel * e->kernel;
    const int64_t x_shape[] = {e->images, e->in_channels, e->width, e->width},
                  w_shape[] = {e->out_channels, e->in_channels, e->kernel, e->kernel},
                  y_shape[] = {e->images, e->out_channels, out, out};
    kn_tensor *x = ones_but(of_x, 4, x_shape, dtype, false), *w = ones_but(-1, 4, w_shape, dtype, true),
              *bias = ones_but(-1, 1, w_shape, dtype, true), *dy = ones_but(of_dy, 4, y_shape, dtype, false);
    CHECK_OK(kn_backward_with(kn_conv2d(x, w, bias), dy, false));
    double *dw = read_doubles(kn_grad(w)), *db = read_doubles(kn_grad(bias));
    assert_non_null(dw);
    assert_non_null(db);
    for (int64_t i = 0; i < e->out_channels * taps; i++) {
        bool infinite = reaches_infinity(e, of_x, of_dy, i / taps, i % taps / e->kernel / e->kernel,
                                         i / e->kernel % e->kernel, i % e->kernel);
        double right = infinite ? INFINITY : (double)(e->images * out * out);
        if (!is_right(row, dw[i], right, shares_channel(e, of_x, of_dy, i / taps, i % taps / e->kernel / e->kernel)))
            fail_msg("%s, width %d, infinite element %d of x, %d of dy: gradient %d of the weight is %g, should be %g",
                     row->name, (int)e->width, (int)of_x, (int)of_dy, (int)i, dw[i], right);
    }
    for (int64_t k = 0; k < e->out_channels; k++)
        assert_true(
            db[k] ==
            (of_dy >= 0 && of_dy / (out * out) % e->out_channels == k ? INFINITY : (double)(e->images * out * out)));
    free(dw);
    free(db);
}

static void check_implementation(const kn_implementation *row, kn_dtype dtype)
{
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i += (size_t)next_size()) {
        const extent *e = &extents[i];
        int64_t out = e->width - e->kernel + 1;
        int64_t dy_size = e->images * e->out_channels * out * out,
                x_size = e->images * e->in_channels * e->width * e->width;
        /* Each column of an early row, and a few others. */
        for (int64_t at = 0; at < dy_size; at += at < out ? 1 : dy_size / 7 + 1) {
            KN_SCOPE;
            check_weights(e, dtype, -1, at, row);
        }
        for (int64_t at = 0; at < x_size; at += at < e->width ? 1 : x_size / 7 + 1) {
            KN_SCOPE;
            check_weights(e, dtype, at, -1, row);
        }
    }
}

/* Of volumes, strides or dilations, for the other rows. */
static bool makes_another_problem(const kn_implementation *row)
{
    static const char *const names[] = {"slices", "gathered", "dilated"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(row->name, names[i]) == 0)
            return true;
    return false;
}

static void test_weight_gradients(void **state)
{
    static const char operation[] = "conv2d_backward_weights";
    const kn_implementation_table *table = kn_implementation_table_find(operation);
    bool has_f64 = kn_device_limits(kn_device_current())->has_f64;
    (void)state;
    assert_non_null(table);
    for (int i = 0; i < table->count; i++)
        for (int f64 = 0; f64 <= (has_f64 ? 1 : 0); f64++) {
            if (!can_force(table, &table->rows[i]) || (f64 && table->rows[i].works))
                continue;
            if (makes_another_problem(&table->rows[i]))
                continue;
            if (f64 && simulates_gpu() && !test_full())
                continue; /* the same loops */
            kn_force_implementation(operation, table->rows[i].name);
            check_implementation(&table->rows[i], f64 ? KN_F64 : KN_F32);
            kn_forced_count count = kn_count_forced(operation);
            kn_force_implementation(operation, NULL);
            assert_true(count.ran > 0);
        }
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {TEST(test_weight_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
