/* ops/gemm/instructions.c - checks that a device's instructions for products compute what kernels expect: its tensor
 * cores' (cl/gemm/mma.clh, mma_halves.clh), a CPU's for pairs of bf16 (pair_dots.clh).
 *
 * The kernels contain assembly, which the driver may reject, and depend on which lane holds which element, which cannot
 * be queried. So before the first use on a device two products, which between them read both operands in both
 * orientations, are compared with the host's. */
#include "ops/gemm/instructions.h"

#include <koine/stream.h>
#include <math.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/half.h"
#include "base/log.h"
#include "base/threads.h"
#include "ops/gemm/blocked.h"
#include "ops/gemm/gemm.h"
#include "rt/command/rehearsing.h"

/* Not multiples of any block, warp, tile or vector; several slices of k. */
enum { M = 131, N = 77, K = 43, LEFT = M * K, RIGHT = K * N, PRODUCT = M * N };

/* How elements are stored, how far they may be off, and by which product. */
typedef struct arithmetic {
    const char *name, *dtype, *hardware; /* the last two in warnings */
    size_t size;                         /* bytes of an element */
    double grain;           /* values are drawn as multiples of it; 0: with all bits of a float's mantissa */
    double product, result; /* relative errors: of each product, of a result's rounding; */
    double least;           /* and the absolute one of the smallest results */
    void (*store)(void *values, int i, double value);
    double (*load)(const void *values, int i);
    kn_status (*multiply)(kn_stream *stream, const kn_gemm_problem *problem);
} arithmetic;

static void store_f32(void *values, int i, double value) { ((float *)values)[i] = (float)value; }
static double load_f32(const void *values, int i) { return ((const float *)values)[i]; }
static void store_f16(void *values, int i, double value) { ((uint16_t *)values)[i] = kn_float_to_half((float)value); }
static double load_f16(const void *values, int i) { return kn_half_to_float(((const uint16_t *)values)[i]); }
static void store_bf16(void *values, int i, double v) { ((uint16_t *)values)[i] = kn_float_to_bfloat((float)v); }
static double load_bf16(const void *values, int i) { return kn_bfloat_to_float(((const uint16_t *)values)[i]); }

static kn_status multiply_in_tf32(kn_stream *stream, const kn_gemm_problem *problem)
{
    return kn_gemm_tensor(stream, problem);
}

/* A product of two values rounded to TF32 has a relative error of slightly more than 2^-10; those of f16 and bf16
 * values are exact, but not their results. */
static const arithmetic arithmetics[KN_INSTRUCTIONS] = {
    [KN_TENSOR_CORES_TF32] = {"tensor-cores-tf32", "TF32", "the tensor cores", 4, 0, 0x1.01p-10, 0, 0, store_f32,
                              load_f32, multiply_in_tf32},
    [KN_TENSOR_CORES_F16] = {"tensor-cores-f16", "f16", "the tensor cores", 2, 0x1p-10, 0, 0x1.01p-11, 0x1p-25,
                             store_f16, load_f16, kn_gemm_halves},
    [KN_PAIRS_BF16] = {"pairs-bf16", "bf16", "the instructions for pairs", 2, 0x1p-7, 0, 0x1.01p-8, 0, store_bf16,
                       load_bf16, kn_gemm_pairs},
};

static atomic_int verdicts[KN_MAX_DEVICES][KN_INSTRUCTIONS]; /* by device slot */
static kn_mutex checking = KN_MUTEX_INIT;

/* The operands and the product, on the device and, in this order, on the host. */
enum { A, B, C, PARTS };
static const size_t counts[PARTS] = {LEFT, RIGHT, PRODUCT};

typedef struct trial {
    const arithmetic *arithmetic;
    kn_stream *stream;
    kn_buffer *buffers[PARTS];
    kn_pinned *host;
} trial;

static size_t size_of(const trial *t, int part) { return counts[part] * t->arithmetic->size; }

static size_t place_of(const trial *t, int part)
{
    size_t place = 0;
    for (int i = 0; i < part; i++)
        place += size_of(t, i);
    return place;
}

static void *values_of(const trial *t, int part) { return (char *)kn_pinned_data(t->host) + place_of(t, part); }
static double value_of(const trial *t, int part, int i) { return t->arithmetic->load(values_of(t, part), i); }

/* In [-1, 1). */
static double draw(uint32_t *state, double grain)
{
    *state = *state * 1664525u + 1013904223u;
    const double value = (double)*state / 2147483648.0 - 1.0;
    return grain > 0 ? floor(value / grain) * grain : value;
}

static kn_status make(trial *t, kn_device *device)
{
    uint32_t state = 1;
    KN_TRY(kn_status_of(t->stream = kn_stream_new(device))); /* the caller's stream may be captured */
    KN_TRY(kn_pinned_alloc(&t->host, device, place_of(t, PARTS)));
    for (int part = A; part < PARTS; part++)
        KN_TRY(kn_buffer_alloc(&t->buffers[part], t->stream, size_of(t, part)));
    for (int part = A; part <= B; part++) {
        for (int i = 0; i < (int)counts[part]; i++)
            t->arithmetic->store(values_of(t, part), i, draw(&state, t->arithmetic->grain));
        KN_TRY(kn_buffer_write_pinned(t->stream, t->buffers[part], 0, t->host, place_of(t, part), size_of(t, part)));
    }
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
static kn_status multiply(trial *t, bool transposed)
{
    const kn_gemm_problem problem = {.product = {.m = M,
                                                 .n = N,
                                                 .k = K,
                                                 .batch = 1,
                                                 .alpha = 1,
                                                 .a = {t->buffers[A], 0, transposed ? M : K, 0, transposed},
                                                 .b = {t->buffers[B], 0, transposed ? K : N, 0, transposed},
                                                 .c = {t->buffers[C], 0, N, 0, false}}};
    KN_TRY(t->arithmetic->multiply(t->stream, &problem));
    KN_TRY(kn_buffer_read_pinned(t->stream, t->buffers[C], 0, t->host, place_of(t, C), size_of(t, C)));
    kn_stream_drain(t->stream);
    return KN_OK;
}

/* Each of K additions in f32, which tensor cores truncate instead of rounding, adds 2^-22 of the sum of magnitudes. */
static kn_status compare(const trial *t, bool transposed)
{
    const arithmetic *by = t->arithmetic;
    for (int i = 0; i < PRODUCT; i++) {
        const int row = i / N, column = i % N;
        double sum = 0, magnitude = 0;
        for (int k = 0; k < K; k++) {
            const double product = value_of(t, A, transposed ? k * M + row : row * K + k) *
                                   value_of(t, B, transposed ? column * K + k : k * N + column);
            sum += product;
            magnitude += fabs(product);
        }
        const double value = value_of(t, C, i);
        if (!(fabs(value - sum) <= (K * 0x1p-22 + by->product) * magnitude + by->result * fabs(sum) + by->least))
            return kn_fail(KN_ERR_DEVICE, "element %d, %d of a product is %g instead of about %g", row, column, value,
                           sum);
    }
    return KN_OK;
}

static kn_status check(kn_device *device, const arithmetic *by)
{
    trial t = {.arithmetic = by};
    const kn_block_shape *forced = kn_block_force(NULL);
    kn_status status = make(&t, device);
    for (int transposed = 0; transposed < 2 && status == KN_OK; transposed++) {
        status = multiply(&t, transposed);
        if (status == KN_OK && !kn_rehearsal_current()) /* in which nothing is computed */
            status = compare(&t, transposed);
    }
    end(&t);
    kn_block_force(forced);
    return status;
}

/* If memory is short the result stays undecided, and the next call tries again. */
kn_verdict kn_instruction_try(kn_device *device, kn_instruction instruction)
{
    KN_PRESERVE_ERROR;
    kn_device_properties properties = {0};
    const arithmetic *by = &arithmetics[instruction];
    const kn_status status = check(device, by);
    if (status != KN_OK && status != KN_ERR_MEMORY && kn_device_get_properties(device, &properties) == KN_OK)
        kn_log_message(KN_LOG_WARNING, "%s of %s are not used in %s: %s", by->hardware, properties.name, by->dtype,
                       kn_error_message());
    return status == KN_OK ? KN_WORKS : status == KN_ERR_MEMORY ? KN_UNDECIDED : KN_FAILS;
}

const char *kn_instruction_name(kn_instruction instruction) { return arithmetics[instruction].name; }

/* A fault in the assembly may take a GPU's context with it, and all tensors. */
static kn_verdict find_verdict(kn_device *device, kn_instruction instruction)
{
    kn_verdict verdict = KN_UNDECIDED;
    if (kn_device_get_type(device) != KN_DEVICE_CPU)
        verdict = kn_trial_elsewhere(device, kn_instruction_name(instruction));
    return verdict != KN_UNDECIDED ? verdict : kn_instruction_try(device, instruction);
}

static bool works(kn_stream *stream, kn_instruction instruction)
{
    kn_device *device = kn_stream_device(stream);
    atomic_int *known = &verdicts[kn_device_slot(device)][instruction];
    if (kn_rehearsal_current()) /* its kernels are rehearsed, too; the verdict is for later */
        return find_verdict(device, instruction) == KN_WORKS;
    if (atomic_load_explicit(known, memory_order_acquire) == KN_UNDECIDED) {
        kn_lock(&checking);
        if (atomic_load(known) == KN_UNDECIDED)
            atomic_store(known, find_verdict(device, instruction));
        kn_unlock(&checking);
    }
    return atomic_load(known) == KN_WORKS;
}

bool kn_tensor_cores_work(kn_stream *stream) { return works(stream, KN_TENSOR_CORES_TF32); }
bool kn_tensor_cores_work_in_f16(kn_stream *stream) { return works(stream, KN_TENSOR_CORES_F16); }
bool kn_pairs_work(kn_stream *stream)
{
    return !kn_device_limits(kn_stream_device(stream))->multiplies_pairs || works(stream, KN_PAIRS_BF16);
}
