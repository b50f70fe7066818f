/* matmul.c - a matrix product on the CPU device and on the GPU, timed side by side and checked against double precision
 * on the host. */
#include <koine/koine.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/options.h"
#include "common/side_by_side.h"

static const char program[] = "matmul";

typedef struct settings {
    const char *device;
    int64_t rows, inner, columns, repeat, seed;
} settings;

/* The result of one device. */
typedef struct result {
    double first, best; /* seconds: the first product, which also compiles the kernels, and the fastest */
    double error;       /* largest |difference| from the f64 reference, relative to the sum of |products| */
} result;

/* --- the check ------------------------------------------------------------------------------------------------- */

/* The largest error in row `row` of c = a b, with a and b on the host. */
static double row_error(const settings *s, const float *a, const float *b, const float *c, int64_t row)
{
    double worst = 0;
    for (int64_t j = 0; j < s->columns; j++) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < s->inner; k++) {
            double product = (double)a[row * s->inner + k] * (double)b[k * s->columns + j];
            sum += product;
            magnitude += fabs(product);
        }
        double difference = fabs((double)c[j] - sum);
        worst = fmax(worst, isnan(difference) ? HUGE_VAL : magnitude > 0 ? difference / magnitude : difference);
    }
    return worst;
}

/* Checks sixteen rows spread over the result, including the first and last. */
static bool check(const settings *s, kn_tensor *a, kn_tensor *b, kn_tensor *c, double *error)
{
    size_t a_bytes = (size_t)kn_numel(a) * sizeof(float), b_bytes = (size_t)kn_numel(b) * sizeof(float);
    size_t row_bytes = (size_t)s->columns * sizeof(float);
    float *a_host = malloc(a_bytes), *b_host = malloc(b_bytes), *row_host = malloc(row_bytes);
    bool done = a_host != NULL && b_host != NULL && row_host != NULL;
    if (!done)
        kn_error_set(KN_ERR_MEMORY, "out of host memory for the check");
    done = done && kn_read(a, a_host, a_bytes) == KN_OK && kn_read(b, b_host, b_bytes) == KN_OK;
    const int64_t checked = s->rows < 16 ? s->rows : 16;
    *error = 0;
    for (int64_t i = 0; done && i < checked; i++) {
        int64_t row = checked > 1 ? i * (s->rows - 1) / (checked - 1) : 0;
        {
            KN_SCOPE;
            done = kn_read(kn_select(c, 0, row), row_host, row_bytes) == KN_OK;
        }
        if (done)
            *error = fmax(*error, row_error(s, a_host, b_host, row_host, row));
    }
    free(a_host);
    free(b_host);
    free(row_host);
    return done;
}

/* --- the product ----------------------------------------------------------------------------------------------- */

static bool multiply(const settings *s, kn_tensor *a, kn_tensor *b, result *r)
{
    bool done = true;
    for (int64_t i = 0; done && i <= s->repeat; i++) {
        KN_SCOPE;
        double started = seconds_now();
        kn_tensor *c = kn_matmul(a, b);
        done = c != NULL && kn_synchronize(kn_device_of(a)) == KN_OK;
        double seconds = seconds_now() - started;
        if (i == 0)
            r->first = seconds;
        else if (i == 1 || seconds < r->best)
            r->best = seconds;
        if (done && i == s->repeat)
            done = check(s, a, b, c, &r->error);
    }
    return done;
}

static bool run_on(const settings *s, kn_device *device, result *r)
{
    if (kn_device_set_current(device) != KN_OK)
        return false;
    kn_manual_seed((uint64_t)s->seed);
    bool done = false;

    KN_SCOPE;
    kn_tensor *a = kn_rand(KN_SHAPE(s->rows, s->inner));
    kn_tensor *b = kn_rand(KN_SHAPE(s->inner, s->columns));
    done = a != NULL && b != NULL && multiply(s, a, b, r);

    return done;
}

static void show(const settings *s, kn_device *device, const result *r)
{
    double flops = 2 * (double)s->rows * (double)s->inner * (double)s->columns;
    printf("%-10s %10.4f %10.4f %10.1f %12.2e  %s\n", kn_device_string(device), r->first, r->best,
           1e-9 * flops / r->best, r->error, kn_device_name(device));
}

int main(int argc, char **argv)
{
    settings s = {.rows = 10000, .inner = 200, .columns = 10000, .repeat = 3};
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s.device, 0, 0,
         "this device only; otherwise the CPU device and the GPU, side by side"},
        {"--rows", "N", OPTION_WHOLE, &s.rows, 1, 1e6, "rows of the left matrix"},
        {"--inner", "N", OPTION_WHOLE, &s.inner, 1, 1e6, "columns of the left, rows of the right matrix"},
        {"--columns", "N", OPTION_WHOLE, &s.columns, 1, 1e6, "columns of the right matrix"},
        {"--repeat", "N", OPTION_WHOLE, &s.repeat, 1, 1e6, "timed products after the first; the fastest counts"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e18, "seed of the matrices"},
    };
    int usage = options_parse(program, "Multiplies two random matrices.", options, OPTION_COUNT(options), argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    kn_device *devices[MAX_DEVICES];
    result results[MAX_DEVICES];
    int count = devices_to_compare(devices, s.device), done = 0;
    while (done < count && run_on(&s, devices[done], &results[done]))
        done++;
    if (count == 0 || done < count) {
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
        return 1;
    }
    printf("[%lld, %lld] @ [%lld, %lld]\n", (long long)s.rows, (long long)s.inner, (long long)s.inner,
           (long long)s.columns);
    printf("%-10s %10s %10s %10s %12s\n", "device", "first s", "best s", "GFLOP/s", "error");
    bool right = true;
    for (int i = 0; i < count; i++) {
        show(&s, devices[i], &results[i]);
        /* f32 sums of any order stay within the length of the sum times the unit roundoff. */
        right = right && results[i].error <= (double)s.inner * 6e-8;
    }
    if (!right)
        fprintf(stderr, "%s: the result differs from the double-precision reference by more than f32 rounding\n",
                program);
    return options_finish(program, right ? 0 : 1);
}
