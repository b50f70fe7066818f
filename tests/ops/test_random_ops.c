/* test_random_ops.c - the harness of op_row.h over random shapes and parameters.
 *
 * Row "conv2d/random_7" is the same on every machine, so that failures can be reproduced anywhere. KOINE_TEST_SEED=n
 * draws another set; KOINE_TEST_COUNT=n sets its size, which KOINE_TEST_FULL=1 sets to 10. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/full.h"
#include "support/op_row.h"
#include "support/values.h"

#define MAX_ROWS 20000

typedef struct random_case {
    char name[48];
    union {
        kn_conv_params conv;
        kn_pool_params pool;
        kn_cross_entropy_params classes;
        int64_t size[3];
        struct {
            int dims[KN_MAX_DIMS], count;
            bool keepdim;
        } reduce;
    } params;
} random_case;

static op_row *rows;
static random_case *cases;
static int num_rows;

static test_random stream;

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(test_random_next(&stream) % (uint64_t)(high - low + 1));
}
static bool chance(int percent) { return between(1, 100) <= percent; }

/* Mostly small sizes, sometimes one larger than a tile or work-group. */
static int64_t some_size(int64_t large)
{
    return chance(15) ? between(1, large) : chance(50) ? between(1, 4) : between(1, 12);
}

static op_input floats(int ndim, const int64_t *shape)
{
    op_input input = {.fill = FILL_UNIFORM, .ndim = ndim};
    memcpy(input.shape, shape, (size_t)ndim * sizeof *shape);
    return input;
}

static op_input distinct(int ndim, const int64_t *shape)
{
    op_input input = floats(ndim, shape);
    input.fill = FILL_DISTINCT;
    input.low = -2;
    input.high = 2.037;
    return input;
}

/* --- convolution and pooling ------------------------------------------------------------------------- */

static kn_tensor *build_conv2d(kn_tensor *const *x, const void *params)
{
    return kn_conv2d_with(x[0], x[1], x[2], params);
}
static kn_tensor *build_max_pool(kn_tensor *const *x, const void *params) { return kn_max_pool2d_with(x[0], params); }
static kn_tensor *build_avg_pool(kn_tensor *const *x, const void *params) { return kn_avg_pool2d_with(x[0], params); }
static kn_tensor *build_adaptive_max(kn_tensor *const *x, const void *params)
{
    return kn_adaptive_max_pool2d(x[0], ((const int64_t *)params)[0], ((const int64_t *)params)[1]);
}
static kn_tensor *build_adaptive_avg(kn_tensor *const *x, const void *params)
{
    return kn_adaptive_avg_pool2d(x[0], ((const int64_t *)params)[0], ((const int64_t *)params)[1]);
}

static void draw_conv2d(op_row *row, random_case *c)
{
    kn_conv_params *p = &c->params.conv;
    *p = kn_conv_params_init();
    int64_t groups = chance(70) ? 1 : between(2, 5), per_group = some_size(40), out_per_group = some_size(70);
    int64_t images = chance(25) ? between(4, 20) : between(1, 3), kernel[2], image[2];
    p->groups = groups;
    for (int d = 0; d < 2; d++) {
        kernel[d] = chance(25) ? 1 : between(1, 5);
        p->dilations[d] = chance(75) ? 1 : between(2, 3);
        p->strides[d] = chance(60) ? 1 : between(2, 4);
        p->paddings[d] = chance(50) ? 0 : between(1, 3);
        int64_t reach = p->dilations[d] * (kernel[d] - 1) + 1 - 2 * p->paddings[d];
        image[d] = (reach > 1 ? reach : 1) + some_size(images > 3 ? 6 : 30) - 1;
    }
    if (chance(20)) { /* many small, padded images of many channels */
        images = between(5, 20);
        per_group = between(16, 40);
        out_per_group = between(9, 40);
        for (int d = 0; d < 2; d++) {
            image[d] = between(3, 6);
            kernel[d] = chance(70) ? 3 : 5;
            p->paddings[d] = p->dilations[d] * (kernel[d] / 2);
            p->strides[d] = chance(70) ? 1 : 2;
        }
    }
    row->build = build_conv2d;
    row->inputs[0] = floats(4, (const int64_t[]){images, groups * per_group, image[0], image[1]});
    row->inputs[1] = floats(4, (const int64_t[]){groups * out_per_group, per_group, kernel[0], kernel[1]});
    row->inputs[1].high = 1.0 / (double)(1 + per_group * kernel[0] * kernel[1] / 9);
    row->inputs[1].low = -row->inputs[1].high;
    if (chance(70))
        row->inputs[2] = floats(1, (const int64_t[]){groups * out_per_group});
    row->reduction = images * image[0] * image[1] + out_per_group * 25;
    row->tables = "conv2d conv2d_backward_data conv2d_backward_weights gemm";
}

static void draw_pool(op_row *row, random_case *c)
{
    kn_pool_params *p = &c->params.pool;
    *p = kn_pool_params_init();
    bool average = chance(50);
    int64_t image[2];
    p->ceil_mode = chance(40);
    p->count_include_pad = chance(60);
    p->divisor_override = average && chance(20) ? between(1, 7) : 0;
    p->dilation = 1;
    for (int d = 0; d < 2; d++) {
        p->kernel_sizes[d] = between(1, 5);
        p->strides[d] = between(1, 4);
        p->paddings[d] = between(0, p->kernel_sizes[d] / 2);
        p->dilations[d] = average || chance(70) ? 1 : between(2, 3);
        image[d] = p->dilations[d] * (p->kernel_sizes[d] - 1) + some_size(40);
    }
    row->build = average ? build_avg_pool : build_max_pool;
    row->inputs[0] = distinct(4, (const int64_t[]){between(1, 3), some_size(40), image[0], image[1]});
}

static void draw_adaptive(op_row *row, random_case *c)
{
    row->build = chance(50) ? build_adaptive_max : build_adaptive_avg;
    for (int d = 0; d < 2; d++)
        c->params.size[d] = chance(30) ? 1 : between(1, 9);
    row->inputs[0] = distinct(4, (const int64_t[]){between(1, 3), some_size(40), some_size(20), some_size(20)});
}

/* --- the same in one to three dimensions ------------------------------------------------------------- */

#define BUILD_CONV(op)                                                                                                 \
    static kn_tensor *build_##op(kn_tensor *const *x, const void *params)                                              \
    {                                                                                                                  \
        return kn_##op##_with(x[0], x[1], x[2], params);                                                               \
    }
BUILD_CONV(conv1d)
BUILD_CONV(conv3d)
BUILD_CONV(conv_transpose1d)
BUILD_CONV(conv_transpose2d)
BUILD_CONV(conv_transpose3d)

/* Padding that differs by side, strides, dilations and, transposed, output_padding in each direction of its own. */
static void draw_windows(kn_conv_params *p, int dims, bool transposed, int64_t *kernel, int64_t *size)
{
    *p = kn_conv_params_init();
    for (int d = 0; d < dims; d++) {
        kernel[d] = chance(25) ? 1 : between(1, 4);
        p->dilations[d] = chance(70) ? 1 : between(2, 3);
        p->strides[d] = chance(60) ? 1 : between(2, 3);
        p->paddings[d] = chance(50) ? 0 : between(1, 3);
        p->paddings_after[d] = chance(50) ? KN_PADDING_SYMMETRIC : between(0, 4);
        int64_t after = p->paddings_after[d] == KN_PADDING_SYMMETRIC ? p->paddings[d] : p->paddings_after[d];
        int64_t reach = p->dilations[d] * (kernel[d] - 1) + 1 - p->paddings[d] - after;
        size[d] = (reach > 1 ? reach : 1) + some_size(dims == 1 ? 100 : 10) - 1;
        if (transposed) {
            p->output_paddings[d] = between(0, (p->strides[d] > p->dilations[d] ? p->strides[d] : p->dilations[d]) - 1);
            size[d] = 1 + (p->paddings[d] + after) / p->strides[d] + some_size(dims == 1 ? 40 : 6);
        }
    }
}

static void draw_conv(op_row *row, random_case *c)
{
    static const op_build builds[2][3] = {{build_conv1d, build_conv2d, build_conv3d},
                                          {build_conv_transpose1d, build_conv_transpose2d, build_conv_transpose3d}};
    const int dims = (int)between(1, 3);
    const bool transposed = chance(50);
    int64_t groups = chance(60) ? 1 : between(2, 4), in = some_size(20), out = some_size(20), terms = 1, taps = 1;
    int64_t x[5] = {between(1, 3), groups * in}, weight[5] = {groups * out, in};
    kn_conv_params *p = &c->params.conv;
    draw_windows(p, dims, transposed, weight + 2, x + 2);
    p->groups = groups;
    if (transposed) {
        weight[0] = groups * in;
        weight[1] = out;
    }
    for (int d = 0; d < dims; d++) {
        terms *= x[2 + d] * p->strides[d] + 4;
        taps *= weight[2 + d];
    }
    row->build = builds[transposed][dims - 1];
    row->inputs[0] = floats(dims + 2, x);
    row->inputs[1] = floats(dims + 2, weight);
    row->inputs[1].high = 1.0 / (double)(1 + in * taps / 9);
    row->inputs[1].low = -row->inputs[1].high;
    if (chance(70))
        row->inputs[2] = floats(1, (const int64_t[]){groups * out});
    row->reduction = x[0] * terms + (in + out) * taps;
    row->tables = "conv2d conv2d_backward_data conv2d_backward_weights";
}

#define BUILD_POOL(dims)                                                                                               \
    static kn_tensor *build_max##dims(kn_tensor *const *x, const void *params)                                         \
    {                                                                                                                  \
        kn_tensor *indices = NULL;                                                                                     \
        return kn_max_pool##dims##d_with_indices_with(x[0], &indices, params);                                         \
    }                                                                                                                  \
    static kn_tensor *build_avg##dims(kn_tensor *const *x, const void *params)                                         \
    {                                                                                                                  \
        return kn_avg_pool##dims##d_with(x[0], params);                                                                \
    }
BUILD_POOL(1)
BUILD_POOL(2)
BUILD_POOL(3)

static void draw_pool_of_any(op_row *row, random_case *c)
{
    static const op_build builds[2][3] = {{build_max1, build_max2, build_max3}, {build_avg1, build_avg2, build_avg3}};
    const int dims = (int)between(1, 3);
    const bool average = chance(50);
    int64_t x[5] = {between(1, 3), some_size(20)};
    kn_pool_params *p = &c->params.pool;
    *p = kn_pool_params_init();
    p->ceil_mode = chance(40);
    p->count_include_pad = chance(60);
    for (int d = 0; d < dims; d++) {
        p->kernel_sizes[d] = between(1, 4);
        p->strides[d] = between(1, 3);
        p->paddings[d] = between(0, p->kernel_sizes[d] / 2);
        p->paddings_after[d] = chance(50) ? KN_PADDING_SYMMETRIC : between(0, p->kernel_sizes[d] / 2);
        x[2 + d] = p->kernel_sizes[d] - 1 + some_size(dims == 1 ? 100 : 12);
    }
    if (!average && chance(30)) {
        p->dilation = 2;
        for (int d = 0; d < dims; d++)
            x[2 + d] += p->kernel_sizes[d];
    }
    row->build = builds[average][dims - 1];
    row->inputs[0] = distinct(dims + 2, x);
}

static kn_tensor *build_adaptive_max3(kn_tensor *const *x, const void *params)
{
    const int64_t *n = params;
    kn_tensor *indices = NULL;
    return kn_adaptive_max_pool3d_with_indices(x[0], n[0], n[1], n[2], &indices);
}
static kn_tensor *build_adaptive_avg3(kn_tensor *const *x, const void *params)
{
    const int64_t *n = params;
    return kn_adaptive_avg_pool3d(x[0], n[0], n[1], n[2]);
}

static void draw_adaptive3(op_row *row, random_case *c)
{
    int64_t x[5] = {between(1, 3), some_size(10)};
    for (int d = 0; d < 3; d++) {
        c->params.size[d] = chance(30) ? 1 : between(1, 5);
        x[2 + d] = some_size(9);
    }
    row->build = chance(50) ? build_adaptive_max3 : build_adaptive_avg3;
    row->inputs[0] = distinct(5, x);
}

/* --- products, elementwise, reductions --------------------------------------------------------------- */

static kn_tensor *build_matmul(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_matmul(x[0], x[1]);
}

/* Stored transposed, as kn_linear's weight is. */
static kn_tensor *build_matmul_transposed(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_matmul(kn_transpose(x[0], -1, -2), kn_transpose(x[1], -1, -2));
}

static void draw_matmul(op_row *row, random_case *c)
{
    (void)c;
    int64_t m = some_size(200), k = some_size(300), n = some_size(200), batch[2] = {between(1, 3), between(1, 3)};
    bool transposed = chance(40);
    int64_t a[4] = {batch[0], batch[1], transposed ? k : m, transposed ? m : k};
    int64_t b[4] = {batch[0], batch[1], transposed ? n : k, transposed ? k : n};
    int skip_a = (int)between(0, 2), skip_b = (int)between(0, 2);
    for (int d = 0; d < 2; d++) {
        a[d] = chance(25) ? 1 : a[d];
        b[d] = chance(25) ? 1 : b[d];
    }
    row->build = transposed ? build_matmul_transposed : build_matmul;
    row->inputs[0] = floats(4 - skip_a, a + skip_a);
    row->inputs[1] = floats(4 - skip_b, b + skip_b);
    row->reduction = 9 * (k > m ? (k > n ? k : n) : (m > n ? m : n));
    row->tables = "gemm";
}

static kn_tensor *build_add(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_add(x[0], x[1]);
}
static kn_tensor *build_mul(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_mul(x[0], x[1]);
}
static kn_tensor *build_sub_in_place(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_sub_(kn_clone(kn_mul(x[0], kn_ones_like(x[0]))), x[1]);
}

static void draw_broadcast(op_row *row, random_case *c)
{
    (void)c;
    int64_t a[KN_MAX_DIMS], b[KN_MAX_DIMS];
    int ndim = (int)between(1, 5), skip = (int)between(0, ndim);
    bool in_place = chance(25);
    for (int d = 0; d < ndim; d++) {
        int64_t size = chance(4) ? 0 : some_size(d == ndim - 1 ? 300 : 12);
        a[d] = in_place || chance(75) ? size : 1;
        b[d] = chance(75) ? size : 1;
    }
    row->build = in_place ? build_sub_in_place : chance(50) ? build_add : build_mul;
    row->inputs[0] = floats(ndim, a);
    row->inputs[1] = floats(ndim - skip, b + skip);
    row->reduction = 100000;
}

static kn_tensor *build_sum_dims(kn_tensor *const *x, const void *params)
{
    const random_case *c = params;
    return kn_sum_dims(x[0], c->params.reduce.dims, c->params.reduce.count, c->params.reduce.keepdim);
}
static kn_tensor *build_mean_dims(kn_tensor *const *x, const void *params)
{
    const random_case *c = params;
    return kn_mean_dims(x[0], c->params.reduce.dims, c->params.reduce.count, c->params.reduce.keepdim);
}
static kn_tensor *build_max_dim(kn_tensor *const *x, const void *params)
{
    const random_case *c = params;
    return kn_max_dim(x[0], c->params.reduce.dims[0], c->params.reduce.keepdim, NULL);
}
static kn_tensor *build_softmax(kn_tensor *const *x, const void *params)
{
    return kn_softmax(x[0], ((const random_case *)params)->params.reduce.dims[0]);
}
static kn_tensor *build_log_softmax(kn_tensor *const *x, const void *params)
{
    return kn_log_softmax(x[0], ((const random_case *)params)->params.reduce.dims[0]);
}

static void draw_reduction(op_row *row, random_case *c)
{
    static const op_build builds[] = {build_sum_dims, build_mean_dims, build_max_dim, build_softmax, build_log_softmax};
    int64_t shape[KN_MAX_DIMS];
    int ndim = (int)between(1, 5), large = (int)between(0, ndim - 1);
    row->params = c;
    row->build = builds[between(0, 4)];
    for (int d = 0; d < ndim; d++)
        shape[d] = d == large && chance(40) ? between(1, 3000) : between(1, 7);
    for (int d = 0; d < ndim; d++)
        if (chance(50) || (d == ndim - 1 && c->params.reduce.count == 0))
            c->params.reduce.dims[c->params.reduce.count++] = chance(50) ? d : d - ndim;
    c->params.reduce.keepdim = chance(50);
    row->inputs[0] = distinct(ndim, shape);
    row->reduction = 3000;
}

/* --- losses ------------------------------------------------------------------------------------------ */

static kn_tensor *build_cross_entropy(kn_tensor *const *x, const void *params)
{
    kn_cross_entropy_params p = *(const kn_cross_entropy_params *)params;
    p.weight = x[2];
    return kn_cross_entropy_with(x[0], x[1], &p);
}

static void draw_cross_entropy(op_row *row, random_case *c)
{
    kn_cross_entropy_params *p = &c->params.classes;
    int64_t shape[5] = {some_size(200), some_size(300), between(1, 5), between(1, 5), between(1, 3)};
    int ndim = chance(50) ? 2 : (int)between(3, 5);
    p->ignore_index = chance(30) ? 0 : -100;
    p->label_smoothing = chance(40) ? 0.3 : 0;
    p->reduction = (kn_reduction)between(0, 2);
    if (p->ignore_index == 0 && shape[1] == 1)
        shape[1] = 2;
    row->build = build_cross_entropy;
    row->inputs[0] = floats(ndim, shape);
    row->inputs[0].low = -3;
    row->inputs[0].high = 3;
    if (chance(30)) {
        row->inputs[1] = floats(ndim, shape);
        row->inputs[1].fill = FILL_SHARES;
        row->inputs[1].constant = true;
    } else {
        const int64_t target[4] = {shape[0], shape[2], shape[3], shape[4]};
        /* From class 1 on if class 0 is ignored: the mean of no elements would be NaN. */
        row->inputs[1] = floats(ndim - 1, target);
        row->inputs[1].fill = FILL_WHOLE;
        row->inputs[1].dtype = KN_I64;
        row->inputs[1].constant = true;
        row->inputs[1].low = p->ignore_index == 0 ? 1 : 0;
        row->inputs[1].high = (double)shape[1];
    }
    if (chance(40)) {
        row->inputs[2] = floats(1, (const int64_t[]){shape[1]});
        row->inputs[2].low = 0.2;
        row->inputs[2].high = 2;
        row->inputs[2].constant = true;
    }
    row->reduction = 20000;
}

/* --- the table --------------------------------------------------------------------------------------- */

typedef void (*draw_function)(op_row *row, random_case *c);

static void add_family(const char *family, draw_function draw, int count, const char *seed)
{
    for (int i = 0; i < count && num_rows < MAX_ROWS; i++) {
        op_row *row = &rows[num_rows];
        random_case *c = &cases[num_rows++];
        char text[96];
        snprintf(c->name, sizeof c->name, "%s/random_%d", family, i);
        snprintf(text, sizeof text, "%s%s", c->name, seed);
        stream = test_random_from(text);
        row->name = c->name;
        row->params = &c->params;
        row->layouts = i % 5 == 4;
        draw(row, c);
    }
}

int main(int argc, char **argv)
{
    const char *seed = getenv("KOINE_TEST_SEED"), *count_text = getenv("KOINE_TEST_COUNT");
    int count = count_text ? atoi(count_text) : test_full() ? 10 : 4;
    rows = calloc(MAX_ROWS, sizeof *rows);
    cases = calloc(MAX_ROWS, sizeof *cases);
    if (!rows || !cases)
        return 1;
    add_family("conv2d", draw_conv2d, 2 * count, seed ? seed : "");
    add_family("pool2d", draw_pool, 2 * count, seed ? seed : "");
    add_family("adaptive_pool2d", draw_adaptive, count, seed ? seed : "");
    add_family("conv", draw_conv, 2 * count, seed ? seed : "");
    add_family("pool", draw_pool_of_any, 2 * count, seed ? seed : "");
    add_family("adaptive_pool3d", draw_adaptive3, count, seed ? seed : "");
    add_family("matmul", draw_matmul, count, seed ? seed : "");
    add_family("broadcast", draw_broadcast, 2 * count, seed ? seed : "");
    add_family("reduction", draw_reduction, 2 * count, seed ? seed : "");
    add_family("cross_entropy", draw_cross_entropy, count, seed ? seed : "");
    const op_table table = {.rows = rows, .count = num_rows};
    const op_table *const tables[] = {&table, NULL};
    int status = op_test_main(argc, argv, tables);
    free(rows);
    free(cases);
    return status;
}
