/* tensor_core_values.h - what tests of products on tensor cores multiply (test_tensor_cores.c, tensor_core_f16.c). */
#pragma once

#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/choice.h"
#include "ops/gemm/blocked.h"
#include "ops/gemm/instructions.h"
#include "support/values.h"

enum { MATMUL = KN_MATMUL_ALLOW_TF32, CONV = KN_CONV_ALLOW_TF32 };

static inline void allow(unsigned what)
{
    kn_set_allow_reduced_precision(MATMUL | CONV, false);
    if (what)
        CHECK_OK(kn_set_allow_reduced_precision(what, true));
}

/* Rounds like cvt.rna.tf32.f32: to 10 bits of mantissa, ties away from zero. */
static inline double round_tf32(double value)
{
    float x = (float)value;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000u) & 0xffffe000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Uniform in [-1, 1); freed with free(). */
static inline double *draw(test_random *random, int64_t count, bool rounded)
{
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = test_random_uniform(random, -1, 1);
        values[i] = rounded ? round_tf32(values[i]) : values[i];
    }
    return values;
}

/* `transposed`: stored as columns x rows, viewed as rows x columns. */
static inline kn_tensor *matrix(const double *values, int64_t rows, int64_t columns, bool transposed)
{
    const int64_t shape[] = {rows, columns}, stored[] = {columns, rows};
    double *other = malloc((size_t)(rows * columns + 1) * sizeof *other);
    assert_non_null(other);
    for (int64_t i = 0; i < rows * columns; i++)
        other[transposed ? i % columns * rows + i / columns : i] = values[i];
    kn_tensor *t = tensor_of_doubles(other, 2, transposed ? stored : shape, KN_F32, false);
    free(other);
    CHECK_TENSOR(t);
    return transposed ? kn_transpose(t, 0, 1) : t;
}

static const int64_t sizes[][3] = {{131, 77, 43},  {1, 1, 1},      {16, 8, 8},    {17, 9, 9},
                                   {128, 128, 16}, {129, 130, 33}, {3, 200, 70},  {200, 3, 70},
                                   {40, 33, 1},    {64, 64, 300},  {72, 136, 40}, {8, 264, 24}};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

/* Number `number` of the block shapes that fit the device, cyclically. */
static inline const kn_block_shape *shape_number(int number, kn_block_arithmetic arithmetic)
{
    const kn_limits *limits = kn_device_limits(kn_device_current());
    const kn_block_shape *shape, *fitting[KN_BLOCK_SHAPES];
    int count = 0;
    for (int i = 0; (shape = kn_block_shape_at(i)); i++)
        if (kn_block_fits(shape, limits, arithmetic))
            fitting[count++] = shape;
    assert_true(count > 0);
    return fitting[number % count];
}

/* --- tensor_core_f16.c -------------------------------------------------------------------------------------------- */

void test_f16_products(void **state);
void test_f16_windows(void **state);
void test_f16_gradients(void **state);
