/* test_tensor_cores.c - TF32 and f16 on tensor cores: values, error bounds, flags, and devices whose tensor cores do
 * not work. test_tensor_cores works|refused|wrong.
 *
 * "works": the device's own, if it has any; otherwise the environment emulates the instructions (KOINE_KERNEL_DIR,
 * tests/ops/tensor_cores). "wrong": an emulation with swapped lanes. "refused": a compiler that does not know the
 * instructions. */
#include "support/check.h"

#include <CL/cl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "ops/tensor_core_values.h"
#include "rt/device/inject.h"
#include "support/as_gpu.h"

static atomic_int warnings;
static char warning[512];
static void keep_warning(kn_log_level level, const char *message, void *user)
{
    (void)user;
    if (level == KN_LOG_WARNING && strstr(message, "tensor cores")) {
        warnings++;
        snprintf(warning, sizeof warning, "%s", message);
    }
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* Compares with the product of the rounded values, up to rounding of f32 sums, and with that of the exact values, up to
 * 2^-10 of each product more. Returns the largest difference from the latter relative to its bound. */
static double check_product(const double *a, const double *b, const double *c, int64_t m, int64_t n, int64_t k)
{
    double worst = 0;
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0, rounded = 0, magnitude = 0;
        for (int64_t j = 0; j < k; j++) {
            const double x = a[i / n * k + j], y = b[j * n + i % n];
            sum += x * y;
            rounded += round_tf32(x) * round_tf32(y);
            magnitude += fabs(x * y);
        }
        const double slack = (double)k * 0x1p-22 * magnitude, bound = 0x1.01p-10 * magnitude + slack;
        if (!(fabs(c[i] - rounded) <= slack) || !(fabs(c[i] - sum) <= bound))
            fail_msg("m %d n %d k %d: element %d is %.9g, not %.9g (%.9g without rounding)", (int)m, (int)n, (int)k,
                     (int)i, c[i], rounded, sum);
        worst = bound > 0 ? fmax(worst, fabs(c[i] - sum) / bound) : worst;
    }
    return worst;
}

/* Each size with all orientations of the operands; each block shape with several of both. */
static void test_products(void **state)
{
    test_random random = test_random_from("tensor cores");
    double worst = 0;
    (void)state;
    allow(MATMUL);
    kn_force_implementation("gemm", "tensor");
    for (int i = 0; i < 4 * NUM_SIZES; i++) {
        const int64_t m = sizes[i / 4][0], n = sizes[i / 4][1], k = sizes[i / 4][2];
        double *a = draw(&random, m * k, false), *b = draw(&random, k * n, false), *c = NULL;
        kn_block_force(shape_number(i / 4 + i, KN_BLOCK_TF32));
        {
            KN_SCOPE;
            c = read_doubles(kn_matmul(matrix(a, m, k, i & 1), matrix(b, k, n, i & 2)));
        }
        assert_non_null(c);
        worst = fmax(worst, check_product(a, b, c, m, n, k));
        free(a);
        free(b);
        free(c);
    }
    assert_int_equal(kn_count_forced("gemm").ran, 4 * NUM_SIZES);
    kn_force_implementation("gemm", NULL);
    kn_block_force(NULL);
    assert_true(worst > 0.1); /* it does round: f32 would be much closer */
    allow(0);
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

typedef struct layer {
    int64_t images, in, out, size[2], kernel, stride, padding, dilation, groups;
} layer;

static const layer layers[] = {{2, 3, 5, {9, 11}, 3, 1, 1, 1, 1},   {3, 19, 35, {7, 5}, 1, 1, 0, 1, 1},
                               {2, 8, 12, {13, 10}, 3, 2, 1, 1, 2}, {1, 2, 130, {12, 15}, 5, 1, 2, 1, 1},
                               {2, 4, 4, {11, 12}, 3, 1, 2, 2, 4},  {1, 1, 1, {1, 1}, 1, 1, 0, 1, 1},
                               {17, 5, 20, {10, 9}, 3, 3, 0, 1, 1}};
enum { NUM_LAYERS = sizeof layers / sizeof layers[0] };

typedef struct passes {
    double *y, *dx, *dw;
    int64_t y_count, x_count, w_count;
} passes;

static passes convolve(const layer *l, kn_dtype dtype, const double *x, const double *w, const double *dy)
{
    const int64_t x_shape[] = {l->images, l->in, l->size[0], l->size[1]},
                  w_shape[] = {l->out, l->in / l->groups, l->kernel, l->kernel};
    passes p = {.y = NULL};
    {
        KN_SCOPE;
        kn_tensor *input = tensor_of_doubles(x, 4, x_shape, dtype, true);
        kn_tensor *weight = tensor_of_doubles(w, 4, w_shape, dtype, true);
        kn_tensor *y = kn_conv2d(input, weight, NULL, .stride = l->stride, .padding = l->padding,
                                 .dilation = l->dilation, .groups = l->groups);
        CHECK_TENSOR(y);
        CHECK_OK(kn_backward_with(y, tensor_of_doubles(dy, 4, kn_shape(y), dtype, false), false));
        p = (passes){
            read_doubles(y), read_doubles(kn_grad(input)), read_doubles(kn_grad(weight)), kn_numel(y), kn_numel(input),
            kn_numel(weight)};
    }
    assert_true(p.y && p.dx && p.dw);
    return p;
}

static void free_passes(passes *p)
{
    free(p->y);
    free(p->dx);
    free(p->dw);
}

static void check_values_of(const double *values, const double *right, int64_t count, int64_t reduction,
                            const char *what, int number)
{
    char message[400];
    closeness limit = closeness_of(KN_F32, reduction);
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(right[i]));
    limit.atol += limit.rtol * largest;
    if (!values_close(values, right, count, limit, message, sizeof message))
        fail_msg("layer %d, %s: %s", number, what, message);
}

/* With values exact in TF32: the only error is that of f32 sums. */
static void test_convolutions(void **state)
{
    static const char *const operations[] = {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"};
    test_random random = test_random_from("tensor cores, convolutions");
    (void)state;
    const kn_dtype exact = check_has_f64() ? KN_F64 : KN_F32;
    for (int i = 0; i < NUM_LAYERS; i++) {
        const layer *l = &layers[i];
        const int64_t x_count = l->images * l->in * l->size[0] * l->size[1];
        const int64_t taps = l->in / l->groups * l->kernel * l->kernel;
        double *x = draw(&random, x_count, true), *w = draw(&random, l->out * taps, true);
        double *dy = draw(&random, l->images * l->out * (l->size[0] + 4) * (l->size[1] + 4), true); /* enough */
        allow(0);
        passes right = convolve(l, exact, x, w, dy);
        allow(CONV);
        for (int pass = 0; pass < 3; pass++)
            kn_force_implementation(operations[pass], "tensor");
        passes p = convolve(l, KN_F32, x, w, dy);
        for (int pass = 0; pass < 3; pass++) {
            assert_int_equal(kn_count_forced(operations[pass]).ran, 1);
            kn_force_implementation(operations[pass], NULL);
        }
        check_values_of(p.y, right.y, p.y_count, taps, "forward", i);
        check_values_of(p.dx, right.dx, p.x_count, l->out * l->kernel * l->kernel, "backward-data", i);
        check_values_of(p.dw, right.dw, p.w_count, p.y_count / l->out, "backward-weights", i);
        free_passes(&p);
        free_passes(&right);
        free(x);
        free(w);
        free(dy);
    }
    allow(0);
}

/* --- flags --------------------------------------------------------------------------------------- */

/* A product and a convolution of values that TF32 rounds. */
static void compute_both(double product[64 * 48], double result[2 * 16 * 100])
{
    test_random random = test_random_from("tensor cores, flags");
    double *a = draw(&random, 64 * 32, false), *b = draw(&random, 32 * 48, false);
    const layer l = {2, 8, 16, {10, 10}, 3, 1, 1, 1, 1};
    double *x = draw(&random, 2 * 8 * 100, false), *w = draw(&random, 16 * 72, false);
    double *dy = draw(&random, 2 * 16 * 100, false), *c = NULL;
    {
        KN_SCOPE;
        c = read_doubles(kn_matmul(matrix(a, 64, 32, false), matrix(b, 32, 48, false)));
    }
    assert_non_null(c);
    passes p = convolve(&l, KN_F32, x, w, dy);
    memcpy(product, c, 64 * 48 * sizeof *c);
    memcpy(result, p.y, 2 * 16 * 100 * sizeof *p.y);
    free_passes(&p);
    free(a);
    free(b);
    free(c);
    free(x);
    free(w);
    free(dy);
}

static void test_flags(void **state)
{
    static double product[4][64 * 48], result[4][2 * 16 * 100];
    static const unsigned flags[] = {0, MATMUL, CONV, MATMUL | CONV};
    (void)state;
    for (int i = 0; i < 4; i++) {
        allow(flags[i]);
        compute_both(product[i], result[i]);
    }
    for (int i = 1; i < 4; i++) {
        assert_int_equal(memcmp(product[0], product[i], sizeof product[0]) != 0, (flags[i] & MATMUL) != 0);
        assert_int_equal(memcmp(result[0], result[i], sizeof result[0]) != 0, (flags[i] & CONV) != 0);
    }
    allow(0);
    kn_force_implementation("gemm", "tensor"); /* not even if forced */
    {
        KN_SCOPE;
        assert_null(kn_matmul(kn_ones(KN_SHAPE(9, 9)), kn_ones(KN_SHAPE(9, 9))));
    }
    CHECK_ERROR(KN_ERR_STATE, "gemm", "tensor", "reduced precision");
    kn_force_implementation("gemm", NULL);
    assert_int_equal(warnings, 0);
}

/* --- the check ---------------------------------------------------------------------------------------------------- */

/* A temporary shortage of memory does not disable tensor cores. */
static void test_short_of_memory(void **state)
{
    kn_stream *stream = kn_stream_current(kn_device_current());
    (void)state;
    kn_inject(KN_CL_ALLOC, 1, CL_MEM_OBJECT_ALLOCATION_FAILURE, true);
    assert_false(kn_tensor_cores_work(stream));
    kn_inject_stop();
    assert_int_equal(warnings, 0);
    assert_true(kn_tensor_cores_work(stream));
}

/* The first f16 product is captured, where waiting is an error: the check does not interfere. */
static void test_first_in_a_graph(void **state)
{
    kn_graph *graph;
    kn_tensor *a = kn_ones(KN_SHAPE(20, 30), .dtype = KN_F16), *b = kn_ones(KN_SHAPE(30, 40), .dtype = KN_F16),
              *c = NULL;
    (void)state;
    CHECK_NEW(graph = kn_graph_new());
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_ERROR);
    kn_force_implementation("matmul_f16", "tensor");
    {
        KN_GRAPH_CAPTURE(graph, NULL);
        KN_SCOPE;
        c = kn_retain(kn_to_dtype(kn_matmul(a, b), KN_F32));
    }
    assert_int_equal(kn_count_forced("matmul_f16").ran, 1);
    kn_force_implementation("matmul_f16", NULL);
    kn_set_sync_debug_mode(KN_SYNC_DEBUG_OFF);
    CHECK_OK(kn_graph_replay(graph));
    {
        KN_SCOPE;
        CHECK_VALUES(kn_max(c), 30);
    }
    kn_release(c);
    kn_graph_free(graph);
    kn_release(a);
    kn_release(b);
    assert_int_equal(warnings, 0);
}

static void *multiply_in_thread(void *right)
{

    KN_SCOPE;
    double *c = read_doubles(kn_matmul(kn_full(KN_SHAPE(40, 30), 1.0009765625 + 0x1p-13), kn_ones(KN_SHAPE(30, 20))));
    for (int i = 0; c && i < 40 * 20; i++)
        *(bool *)right &= fabs(c[i] - 30 * (1.0009765625 + 0x1p-13)) < 1e-5;
    *(bool *)right &= c != NULL;
    free(c);

    return NULL;
}

/* Another implementation is used, with exact results; a warning is logged once. */
static void check_fallback(const char *piece)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    bool right[THREADS] = {true, true, true, true};
    allow(MATMUL | CONV);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, multiply_in_thread, &right[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(right[i]);
    }
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, piece));
    kn_force_implementation("gemm", "tensor");
    {
        KN_SCOPE;
        CHECK_VALUES(kn_matmul(kn_ones(KN_SHAPE(1, 3)), kn_ones(KN_SHAPE(3, 2))), 3, 3);
    }
    assert_int_equal(kn_count_forced("gemm").unsupported, 1);
    kn_force_implementation("gemm", NULL);
    assert_int_equal(warnings, 1);
    {
        KN_SCOPE;
        kn_tensor *x = kn_ones(KN_SHAPE(9, 10), .dtype = KN_F16), *y = kn_ones(KN_SHAPE(10, 9), .dtype = KN_F16);
        CHECK_VALUES(kn_max(kn_to_dtype(kn_matmul(x, y), KN_F32)), 10);
    }
    assert_int_equal(warnings, 2);
    assert_non_null(strstr(warning, "f16"));
    allow(0);
}

static void test_refused(void **state)
{
    (void)state;
    check_fallback("does not build");
}

static void test_wrong(void **state)
{
    (void)state;
    check_fallback("of a product is");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "works";
    const bool works = strcmp(mode, "works") == 0, wrong = strcmp(mode, "wrong") == 0;
    kn_device *device = kn_device_current();
    const bool has_own = device && kn_device_limits(device)->ptx_capability >= 80;
    if (!works && has_own && !wrong) {
        printf("skipped: this device has tensor cores\n");
        return 77;
    }
    if (works && has_own)
        unsetenv("KOINE_KERNEL_DIR");
    if (!has_own) {
        obey_as_gpu(2, (char *[]){argv[0], (char *)(uintptr_t) "--tensor-cores"});
        ((kn_limits *)(uintptr_t)kn_device_limits(device))->local_memory = 48 << 10; /* for the largest block */
    }
    kn_log_set_handler(keep_warning, NULL);
    const struct CMUnitTest working[] = {
        TEST(test_short_of_memory), TEST(test_first_in_a_graph), TEST(test_products),     TEST(test_f16_products),
        TEST(test_f16_windows),     TEST(test_f16_gradients),    TEST(test_convolutions), TEST(test_flags)};
    const struct CMUnitTest refused[] = {TEST(test_refused)}, mistaken[] = {TEST(test_wrong)};
    return works   ? cmocka_run_group_tests(working, NULL, NULL)
           : wrong ? cmocka_run_group_tests(mistaken, NULL, NULL)
                   : cmocka_run_group_tests(refused, NULL, NULL);
}
