/* tensor/permutation.c - kn_randperm: Fisher and Yates's shuffle on the host, where permutations are often used; they
 * are the same for every device. */
#include <koine/random.h>

#include <inttypes.h>

#include "base/error.h"
#include "base/integer.h"
#include "base/memory.h"
#include "tensor/element.h"
#include "tensor/philox.h"
#include "tensor/tensor.h"

/* --- random numbers ----------------------------------------------------------------------------------------------- */

/* Blocks that are computed together: enough for the compiler to make vectors of them. */
enum { BLOCKS = 16, NUMBERS = 2 * BLOCKS };

/* Numbers 2 * BLOCKS * run and following, of 64 bits each. */
static void draw_run(uint64_t numbers[NUMBERS], kn_philox state, int64_t run)
{
    uint32_t a[BLOCKS], b[BLOCKS], c[BLOCKS], d[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        const uint64_t at = state.offset + (uint64_t)(run * BLOCKS + i);
        a[i] = (uint32_t)at;
        b[i] = (uint32_t)(at >> 32);
        c[i] = d[i] = 0;
    }
    kn_philox_blocks(a, b, c, d, BLOCKS, state.seed);
    for (int i = 0; i < BLOCKS; i++) {
        numbers[2 * i] = (uint64_t)b[i] << 32 | a[i];
        numbers[2 * i + 1] = (uint64_t)d[i] << 32 | c[i];
    }
}

/* bits as a number from 0 to below `range`. */
static int64_t below(uint64_t bits, int64_t range)
{
    __extension__ typedef unsigned __int128 wide;
    return (int64_t)((wide)bits * (uint64_t)range >> 64);
}

/* --- the shuffle -------------------------------------------------------------------------------------------------- */

/* Elements first to `last` are exchanged with earlier ones, from the last on, by a run's numbers. */
static void shuffle_run(int64_t *order, const uint64_t *numbers, int64_t first, int64_t last)
{
    int64_t others[NUMBERS];
    for (int64_t i = last; i >= first; i--) {
        others[i - first] = below(numbers[i - first], i + 1);
        __builtin_prefetch(&order[others[i - first]], 1);
    }
    for (int64_t i = last; i >= first; i--) {
        const int64_t kept = order[i];
        order[i] = order[others[i - first]];
        order[others[i - first]] = kept;
    }
}

static void shuffle(int64_t *order, int64_t n, kn_philox state)
{
    uint64_t numbers[NUMBERS];
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t run = (n - 1) / NUMBERS; n > 0 && run >= 0; run--) {
        draw_run(numbers, state, run);
        shuffle_run(order, numbers, run * NUMBERS, kn_min_i64((run + 1) * NUMBERS, n) - 1);
    }
}

/* --- the tensor --------------------------------------------------------------------------------------------------- */

/* The greatest n of which the dtype has all numbers 0 .. n - 1. */
static int64_t most_numbers(kn_dtype dtype)
{
    return dtype == KN_F16    ? (1 << 11) + 1
           : dtype == KN_BF16 ? (1 << 8) + 1
           : dtype == KN_F32  ? (1 << 24) + 1
           : dtype == KN_F64  ? (INT64_C(1) << 53) + 1
           : dtype == KN_I64  ? INT64_MAX
                              : kn_dtype_highest(dtype) + 1;
}

kn_tensor *kn_randperm_with(int64_t n, const kn_tensor_options *options)
{
    kn_tensor_options chosen = options ? *options : kn_tensor_options_init();
    if (chosen.dtype == KN_DTYPE_DEFAULT)
        chosen.dtype = KN_I64;
    if (!chosen.device)
        chosen.device = chosen.pin_memory ? kn_device_host() : kn_device_current();
    if (n < 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_randperm: %" PRId64 " elements", n);
    if (n > most_numbers(chosen.dtype))
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_randperm: %s does not have all of %" PRId64 " numbers",
                            kn_dtype_name(chosen.dtype), n);
    if (!chosen.device || kn_generator_check(chosen.generator, chosen.device) != KN_OK)
        return kn_error_make_sticky();
    int64_t *order = kn_calloc((size_t)n, sizeof *order); /* checks for overflow */
    if (!order)
        return kn_error_make_sticky();
    shuffle(order, n, kn_generator_reserve(chosen.generator, chosen.device, 2 * (uint64_t)n));
    int scope = kn_scope_begin();
    kn_tensor *numbers =
        kn_from_data_with(order, 1, &n, &(kn_tensor_options){.dtype = KN_I64, .device = chosen.device});
    kn_tensor *permutation = numbers;
    if (numbers && (chosen.dtype != KN_I64 || chosen.pin_memory || chosen.requires_grad)) {
        permutation = kn_empty_with(1, &n, &chosen);
        if (permutation && kn_tensor_copy(permutation, numbers) != KN_OK)
            permutation = kn_error_make_sticky();
    }
    kn_free(order);
    return kn_scope_return(scope, permutation);
}
