/* cli/tune_shapes.c - finds the fastest implementations for common shapes by running benchmark mode (koine/flags.h) on
 * a list of them. Before a table is timed, each of its implementations is checked against the reference. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cli/tune.h"
#include "ops/dispatch/benchmark.h"
#include "ops/dispatch/choice.h"

/* --- a product or a layer ----------------------------------------------------------------------------------------- */

typedef struct shape {
    int64_t x[4], w[4]; /* a product [m, k] [k, n] uses the first two; a weight is [outputs, inputs / groups, r, r] */
    int64_t stride, padding, groups;
    bool is_product, a_transposed, b_transposed;
} shape;

static kn_tensor *random_matrix(const kn_tuner *tuner, int64_t rows, int64_t columns, bool transposed)
{
    return transposed ? kn_t(kn_rand(KN_SHAPE(columns, rows), .device = tuner->device))
                      : kn_rand(KN_SHAPE(rows, columns), .device = tuner->device);
}

static void make_inputs(kn_tensor *inputs[2], const kn_tuner *tuner, const shape *s)
{
    if (s->is_product) {
        inputs[0] = random_matrix(tuner, s->x[0], s->x[1], s->a_transposed);
        inputs[1] = random_matrix(tuner, s->w[0], s->w[1], s->b_transposed);
    } else {
        inputs[0] = kn_rand(KN_SHAPE(s->x[0], s->x[1], s->x[2], s->x[3]), .device = tuner->device);
        inputs[1] = kn_rand(KN_SHAPE(s->w[0], s->w[1], s->w[2], s->w[3]), .device = tuner->device);
    }
}

static kn_tensor *apply(const shape *s, kn_tensor *x, kn_tensor *w)
{
    return s->is_product ? kn_matmul(x, w)
                         : kn_conv2d(x, w, NULL, .stride = s->stride, .padding = s->padding, .groups = s->groups);
}

/* The result and, on request, the gradients of both inputs. */
enum { RESULTS = 3 };
static kn_status compute(kn_tensor *results[RESULTS], const shape *s, kn_tensor *const inputs[2], bool gradients)
{
    kn_tensor *x = kn_detach(inputs[0]), *w = kn_detach(inputs[1]);
    KN_TRY(kn_set_requires_grad(x, gradients));
    KN_TRY(kn_set_requires_grad(w, gradients));
    results[0] = apply(s, x, w);
    if (!results[0])
        return kn_error_status();
    if (!gradients)
        return KN_OK;
    KN_TRY(kn_backward(kn_sum(kn_mul(results[0], results[0]))));
    results[1] = kn_grad(x);
    results[2] = kn_grad(w);
    return results[1] && results[2] ? KN_OK : kn_error_status();
}

/* --- are all implementations right? ------------------------------------------------------------------------------- */

#define PRODUCT_CASE(m, n, k)                                                                                          \
    {                                                                                                                  \
        .x = {m, k}, .w = {k, n}, .is_product = true                                                                   \
    }
#define LAYER_CASE(c, outputs, r, s, g)                                                                                \
    {                                                                                                                  \
        .x = {3, c, 17, 19}, .w = {outputs, (c) / (g), r, r}, .stride = s, .padding = (r) / 2, .groups = g             \
    }
static const shape product_cases[] = {PRODUCT_CASE(67, 70, 129), PRODUCT_CASE(1, 41, 300)};
static const shape layer_cases[] = {LAYER_CASE(6, 10, 3, 1, 1), LAYER_CASE(6, 10, 3, 2, 1), LAYER_CASE(6, 10, 1, 1, 1),
                                    LAYER_CASE(6, 6, 3, 1, 6)};

/* Both are computed in f32, in different orders, possibly with Winograd transforms. */
static bool are_alike(const float *found, const float *expected, int64_t count)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(expected[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(found[i] - expected[i]) <= 1e-4f * largest))
            return false;
    return true;
}

static kn_status compare(bool *alike, kn_tensor *found, kn_tensor *expected)
{
    const int64_t count = kn_numel(expected);
    float *both = kn_malloc((size_t)(2 * count) * sizeof *both);
    if (!both)
        return KN_ERR_MEMORY;
    kn_status status = kn_read(found, both, (size_t)count * sizeof *both);
    if (status == KN_OK)
        status = kn_read(expected, both + count, (size_t)count * sizeof *both);
    *alike = status == KN_OK && are_alike(both, both + count, count);
    kn_free(both);
    return status;
}

static kn_status check_case(bool *right, kn_tuner *tuner, const char *operation, const char *row, const shape *s)
{
    kn_status status = KN_OK;

    KN_SCOPE;
    kn_tensor *inputs[2], *found[RESULTS], *expected[RESULTS];
    make_inputs(inputs, tuner, s);
    kn_force_implementation(operation, row);
    status = compute(found, s, inputs, true);
    kn_force_implementation(operation, "reference");
    if (status == KN_OK)
        status = compute(expected, s, inputs, true);
    kn_force_implementation(operation, NULL);
    for (int i = 0; i < RESULTS && status == KN_OK && *right; i++)
        status = compare(right, found[i], expected[i]);

    return status;
}

static kn_status check_row(kn_tuner *tuner, const kn_implementation_table *table, const kn_implementation *row)
{
    const bool product = table->family == KN_FAMILY_MATMUL;
    const shape *cases = product ? product_cases : layer_cases;
    const int count = (int)(product ? sizeof product_cases / sizeof *cases : sizeof layer_cases / sizeof *cases);
    char question[96];
    bool right = true;
    kn_tuning_result result = {0};
    snprintf(question, sizeof question, "does %s, %s, compute what the reference does", table->operation, row->name);
    const bool known = kn_tuning_find(&result, tuner->device, question);
    kn_tuning_free(&result);
    if (known)
        return KN_OK;
    for (int i = 0; i < count; i++) {
        if (kn_tune_should_stop(tuner))
            return KN_OK;
        KN_TRY(check_case(&right, tuner, table->operation, row->name, &cases[i]));
    }
    if (!right)
        return kn_error_set(
            KN_ERR_DEVICE,
            "the implementation `%s` of %s gives wrong results on %s: nothing is timed; run `koine doctor` for details",
            row->name, table->operation, kn_device_string(tuner->device));
    kn_tuning_result answer = {.question = question, .choice = (char[]){"yes"}, .complete = true};
    return kn_tune_keep(tuner, &answer);
}

/* The implementations that benchmark mode would time on this device. */
static kn_status check_tables(kn_tuner *tuner, kn_table_family family)
{
    const kn_implementation_table *table;
    for (int t = 0; (table = kn_implementation_tables[t]); t++)
        for (int i = 0; table->family == family && i < table->count; i++) {
            const kn_implementation *row = &table->rows[i];
            const bool timed =
                row->timed_on == KN_TIMED_ANYWHERE || (row->timed_on == KN_TIMED_ON_CPUS) == tuner->limits->is_cpu;
            if (timed && !row->reduced_precision && strcmp(row->name, "reference") != 0 && !kn_tune_should_stop(tuner))
                KN_TRY(check_row(tuner, table, row));
        }
    return KN_OK;
}

/* --- timing ------------------------------------------------------------------------------------------------------- */

typedef struct observed {
    kn_tuner *tuner;
    const char *label;
    double flops;
    bool gradients;
    kn_status status;
} observed;

static void observe(void *user, const char *operation, const kn_tuning_result *result, bool known)
{
    observed *o = user;
    char what[64];
    *(known ? &o->tuner->kept : &o->tuner->measured) += 1;
    if (o->status != KN_OK)
        return;
    const char *pass = strcmp(operation, "conv2d_backward_data") == 0      ? " data"
                       : strcmp(operation, "conv2d_backward_weights") == 0 ? " weights"
                                                                           : "";
    snprintf(what, sizeof what, "%s%s", o->label, pass);
    o->status = kn_tune_report(o->tuner, what, result, o->flops);
    if (o->status == KN_OK && !known && o->tuner->out)
        o->status = kn_tuning_export(o->tuner->device, o->tuner->out);
}

static bool is_over(void *user) { return kn_tune_should_stop(((observed *)user)->tuner); }

static kn_status time_shape(kn_tuner *tuner, const shape *s, const char *label, double flops)
{
    observed o = {.tuner = tuner, .label = label, .flops = flops};
    kn_status status = KN_OK;
    kn_tune_print(tuner, "%s", label);
    kn_benchmark_observe(observe, is_over, &o);
    kn_set_benchmark(true);
    {
        KN_SCOPE;
        kn_tensor *inputs[2], *results[RESULTS];
        make_inputs(inputs, tuner, s);
        status = compute(results, s, inputs, !s->is_product);
        if (status == KN_OK)
            status = kn_synchronize(tuner->device);
    }
    kn_set_benchmark(false);
    kn_benchmark_observe(NULL, NULL, NULL);
    if (status == KN_ERR_MEMORY) { /* device memory: skip this shape; host memory: the next call will fail too */
        kn_tune_print(tuner, "  skipped: %s", kn_error_message());
        kn_error_clear();
        status = KN_OK;
    }
    return status == KN_OK ? o.status : status;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* [m, k] [k, n]: squares, a perceptron's and a recurrent network's layers (DeepBench), forward and backward. */
static const struct {
    int m, n, k;
    const char *transposed; /* "nt": B is */
} products[] = {
    {64, 64, 64, "nn"},       {128, 128, 128, "nn"},    {256, 256, 256, "nn"},    {512, 512, 512, "nn"},
    {1024, 1024, 1024, "nn"}, {1024, 1024, 1024, "nt"}, {1024, 1024, 1024, "tn"}, {2048, 2048, 2048, "nn"},
    {4096, 4096, 4096, "nn"}, {1760, 16, 1760, "nn"},   {1760, 32, 1760, "nn"},   {1760, 64, 1760, "nn"},
    {1760, 128, 1760, "nn"},  {2560, 64, 2560, "nn"},   {2560, 64, 2560, "nt"},   {35, 8457, 2560, "nn"},
    {5124, 9124, 2560, "nn"}, {128, 512, 784, "nt"},    {128, 512, 512, "nn"},    {512, 784, 128, "tn"},
    {10, 512, 128, "tn"},     {1, 4096, 4096, "nn"},
};

kn_status kn_tune_gemm(kn_tuner *tuner)
{
    KN_TRY(check_tables(tuner, KN_FAMILY_MATMUL));
    for (size_t i = 0; i < sizeof products / sizeof products[0] && !kn_tune_should_stop(tuner); i++) {
        const int m = products[i].m, n = products[i].n, k = products[i].k;
        const double flops = 2.0 * m * n * k;
        const shape s = {.x = {m, k},
                         .w = {k, n},
                         .is_product = true,
                         .a_transposed = products[i].transposed[0] == 't',
                         .b_transposed = products[i].transposed[1] == 't'};
        char label[48];
        snprintf(label, sizeof label, "gemm %dx%dx%d %s", m, n, k, products[i].transposed);
        KN_TRY(time_shape(tuner, &s, label, flops));
    }
    return KN_OK;
}

/* Layers of ResNet, VGG, AlexNet, Inception, MobileNet and of the Fashion-MNIST example; 8 images on a CPU device, 32
 * elsewhere. */
static const struct {
    int channels, size, outputs, kernel, stride, padding, groups;
} layers[] = {
    {1, 28, 32, 3, 1, 0, 1},      {32, 13, 64, 5, 1, 0, 1},    {3, 224, 64, 7, 2, 3, 1},   {64, 56, 64, 3, 1, 1, 1},
    {128, 28, 128, 3, 1, 1, 1},   {256, 14, 256, 3, 1, 1, 1},  {512, 7, 512, 3, 1, 1, 1},  {128, 56, 128, 3, 2, 1, 1},
    {64, 56, 256, 1, 1, 0, 1},    {256, 56, 64, 1, 1, 0, 1},   {128, 28, 512, 1, 1, 0, 1}, {512, 28, 128, 1, 1, 0, 1},
    {256, 14, 1024, 1, 1, 0, 1},  {1024, 14, 256, 1, 1, 0, 1}, {3, 224, 64, 3, 1, 1, 1},   {256, 28, 512, 3, 1, 1, 1},
    {64, 27, 192, 5, 1, 2, 1},    {192, 28, 32, 5, 1, 2, 1},   {32, 112, 32, 3, 1, 1, 32}, {144, 56, 144, 3, 1, 1, 144},
    {384, 14, 384, 3, 1, 1, 384}, {64, 32, 64, 3, 1, 1, 1},    {128, 16, 128, 3, 1, 1, 1},
};

kn_status kn_tune_conv(kn_tuner *tuner)
{
    const int images = tuner->limits->is_cpu ? 8 : 32;
    KN_TRY(check_tables(tuner, KN_FAMILY_CONV));
    for (size_t i = 0; i < sizeof layers / sizeof layers[0] && !kn_tune_should_stop(tuner); i++) {
        const int c = layers[i].channels, size = layers[i].size, k = layers[i].outputs, r = layers[i].kernel;
        const int out = (size + 2 * layers[i].padding - r) / layers[i].stride + 1, groups = layers[i].groups;
        const shape s = {.x = {images, c, size, size},
                         .w = {k, c / groups, r, r},
                         .stride = layers[i].stride,
                         .padding = layers[i].padding,
                         .groups = groups};
        char label[48];
        snprintf(label, sizeof label, "conv %d,%d,%d,%d-%d,%dx%d%s", images, c, size, size, k, r, r,
                 layers[i].stride > 1 ? "s2"
                 : groups > 1         ? "g"
                                      : "");
        KN_TRY(time_shape(tuner, &s, label, 2.0 * images * k * (c / groups) * r * r * out * out));
    }
    return KN_OK;
}
