/* ops/gemm/tensor_cores.c - checks that a device's tensor cores compute what cl/gemm/mma.clh and mma_halves.clh expect.
 *
 * The kernels contain PTX, which the driver may reject, and depend on which lane holds which element, which cannot be
 * queried. So before the first use on a device two products, which between them read both operands in both
 * orientations, are computed with and without tensor cores and compared. */
#include <koine/stream.h>
#include <math.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/half.h"
#include "base/log.h"
#include "base/threads.h"
#include "ops/gemm/blocked.h"
#include "ops/gemm/gemm.h"

/* Not multiples of any block, warp, tile or vector; several slices of k. */
enum { M = 131, N = 77, K = 43, LEFT = M * K, RIGHT = K * N, PRODUCT = M * N };

static atomic_int verdicts[KN_MAX_DEVICES][2]; /* by device slot; TF32, f16 */
static kn_mutex checking = KN_MUTEX_INIT;

/* The data of one check, on the device and, in this order, on the host: the operands and the product without tensor
 * cores, in f32, and those with tensor cores, in f16 or f32. */
enum { A, B, BY_ITEMS, CORES_A, CORES_B, BY_CORES, PARTS };
static const size_t counts[PARTS] = {LEFT, RIGHT, PRODUCT, LEFT, RIGHT, PRODUCT};

typedef struct trial {
    bool f16;
    kn_stream *stream;
    kn_buffer *buffers[PARTS];
    kn_pinned *host;
} trial;

static size_t size_of(const trial *t, int part) { return counts[part] * (t->f16 && part >= CORES_A ? 2 : 4); }

static size_t place_of(const trial *t, int part)
{
    size_t place = 0;
    for (int i = 0; i < part; i++)
        place += size_of(t, i);
    return place;
}

static void *values_of(const trial *t, int part) { return (char *)kn_pinned_data(t->host) + place_of(t, part); }

static double value_of(const trial *t, int part, int i)
{
    const void *values = values_of(t, part);
    return t->f16 && part >= CORES_A ? (double)kn_half_to_float(((const uint16_t *)values)[i])
                                     : (double)((const float *)values)[i];
}

/* In [-1, 1), using all bits of the mantissa (11 for f16). */
static float draw(uint32_t *state, bool f16)
{
    *state = *state * 1664525u + 1013904223u;
    const double value = (double)*state / 2147483648.0 - 1.0;
    return (float)(f16 ? floor(value * 1024) / 1024 : value);
}

static kn_status make(trial *t, kn_device *device)
{
    uint32_t state = 1;
    KN_TRY(kn_status_of(t->stream = kn_stream_new(device))); /* the caller's stream may be captured */
    KN_TRY(kn_pinned_alloc(&t->host, device, place_of(t, PARTS)));
    for (int part = A; part <= B; part++)
        for (size_t i = 0; i < counts[part]; i++) {
            const float value = draw(&state, t->f16);
            ((float *)values_of(t, part))[i] = value;
            if (t->f16)
                ((uint16_t *)values_of(t, CORES_A + part))[i] = kn_float_to_half(value);
            else
                ((float *)values_of(t, CORES_A + part))[i] = value;
        }
    for (int i = 0; i < PARTS; i++)
        KN_TRY(kn_buffer_alloc(&t->buffers[i], t->stream, size_of(t, i)));
    for (int i = 0; i < PARTS; i++)
        if (i != BY_ITEMS && i != BY_CORES)
            KN_TRY(kn_buffer_write_pinned(t->stream, t->buffers[i], 0, t->host, place_of(t, i), size_of(t, i)));
    return KN_OK;
}

static void end(trial *t)
{
    if (t->stream)
        kn_stream_drain(t->stream);
    for (int i = 0; i < PARTS; i++)
        kn_buffer_free(t->buffers[i]);
    kn_pinned_free(t->host);
    if (t->stream)
        kn_stream_free(t->stream);
}

/* A and B plain, or both transposed. */
static kn_gemm_problem product_of(const trial *t, int a, bool transposed)
{
    return (kn_gemm_problem){.product = {.m = M,
                                         .n = N,
                                         .k = K,
                                         .batch = 1,
                                         .alpha = 1,
                                         .a = {t->buffers[a], 0, transposed ? M : K, 0, transposed},
                                         .b = {t->buffers[a + 1], 0, transposed ? K : N, 0, transposed},
                                         .c = {t->buffers[a + 2], 0, N, 0, false}}};
}

static kn_status multiply(trial *t, bool transposed)
{
    const kn_gemm_problem by_items = product_of(t, A, transposed), by_cores = product_of(t, CORES_A, transposed);
    KN_TRY(t->f16 ? kn_gemm_halves(t->stream, &by_cores) : kn_gemm_tensor(t->stream, &by_cores));
    KN_TRY(kn_gemm_blocked(t->stream, &by_items));
    for (int i = BY_ITEMS; i < PARTS; i += BY_CORES - BY_ITEMS)
        KN_TRY(kn_buffer_read_pinned(t->stream, t->buffers[i], 0, t->host, place_of(t, i), size_of(t, i)));
    kn_stream_drain(t->stream);
    return KN_OK;
}

/* The allowed difference of the two products: a product of two values rounded to TF32 has a relative error of slightly
 * more than 2^-10, one of f16 values is exact; each of K additions in f32, which tensor cores truncate instead of
 * rounding, adds 2^-22 of the sum of magnitudes; an f16 result adds half an ulp. */
static double bound_of(const trial *t, bool transposed, int row, int column)
{
    double magnitude = 0;
    for (int i = 0; i < K; i++)
        magnitude += fabs(value_of(t, A, transposed ? i * M + row : row * K + i)) *
                     fabs(value_of(t, B, transposed ? column * K + i : i * N + column));
    const double sums = magnitude * K * 0x1p-22;
    return sums +
           (t->f16 ? 0x1.01p-11 * fabs(value_of(t, BY_ITEMS, row * N + column)) + 0x1p-25 : 0x1.01p-10 * magnitude);
}

static kn_status compare(const trial *t, bool transposed)
{
    for (int i = 0; i < PRODUCT; i++) {
        const double by_cores = value_of(t, BY_CORES, i), by_items = value_of(t, BY_ITEMS, i);
        if (!(fabs(by_cores - by_items) <= bound_of(t, transposed, i / N, i % N)))
            return kn_fail(KN_ERR_DEVICE, "element %d, %d of a product is %g instead of about %g", i / N, i % N,
                           by_cores, by_items);
    }
    return KN_OK;
}

static kn_status check(kn_device *device, bool f16)
{
    trial t = {.f16 = f16};
    const kn_block_shape *forced = kn_block_force(NULL);
    kn_status status = make(&t, device);
    for (int transposed = 0; transposed < 2 && status == KN_OK; transposed++) {
        status = multiply(&t, transposed);
        if (status == KN_OK)
            status = compare(&t, transposed);
    }
    end(&t);
    kn_block_force(forced);
    return status;
}

/* If memory is short the result stays undecided, and the next call tries again. */
kn_verdict kn_tensor_cores_try(kn_device *device, bool f16)
{
    KN_PRESERVE_ERROR;
    kn_device_properties properties = {0};
    const kn_status status = check(device, f16);
    if (status != KN_OK && status != KN_ERR_MEMORY && kn_device_get_properties(device, &properties) == KN_OK)
        kn_log_message(KN_LOG_WARNING, "the tensor cores of %s are not used in %s: %s", properties.name,
                       f16 ? "f16" : "TF32", kn_error_message());
    return status == KN_OK ? KN_WORKS : status == KN_ERR_MEMORY ? KN_UNDECIDED : KN_FAILS;
}

/* A fault in the assembly may take a GPU's context with it, and all tensors. */
static kn_verdict find_verdict(kn_device *device, bool f16)
{
    kn_verdict verdict = KN_UNDECIDED;
    if (kn_device_get_type(device) != KN_DEVICE_CPU)
        verdict = kn_trial_elsewhere(device, f16 ? "tensor-cores-f16" : "tensor-cores-tf32");
    return verdict != KN_UNDECIDED ? verdict : kn_tensor_cores_try(device, f16);
}

static bool work_in(kn_stream *stream, bool f16)
{
    kn_device *device = kn_stream_device(stream);
    atomic_int *known = &verdicts[kn_device_slot(device)][f16];
    if (atomic_load_explicit(known, memory_order_acquire) == KN_UNDECIDED) {
        kn_lock(&checking);
        if (atomic_load(known) == KN_UNDECIDED)
            atomic_store(known, find_verdict(device, f16));
        kn_unlock(&checking);
    }
    return atomic_load(known) == KN_WORKS;
}

bool kn_tensor_cores_work(kn_stream *stream) { return work_in(stream, false); }
bool kn_tensor_cores_work_in_f16(kn_stream *stream) { return work_in(stream, true); }
