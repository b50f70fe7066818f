/* ops/norm/launcher.h - builds the argument lists of normalisation kernels, for CPU devices (batch_norm_run.c) and
 * others (batch_norm_gpu.c). */
#pragma once

#include "ops/norm/norm.h"
#include "ops/pointwise/epilogue.h"
#include "ops/shape/reduce.h"

typedef struct kn_norm_launcher {
    kn_stream *stream;
    const kn_limits *limits;
    kn_dtype dtype;
    const char *source, *operation;
    char options[80];
    kn_arg args[28];
    int count;
} kn_norm_launcher;

static inline void kn_norm_add(kn_norm_launcher *l, kn_arg arg) { l->args[l->count++] = arg; }

/* A missing tensor may be any buffer: the kernel does not read it. */
static inline void kn_norm_add_tensor(kn_norm_launcher *l, const kn_tensor *tensor, const kn_tensor *other)
{
    kn_norm_add(l, kn_arg_tensor(tensor ? tensor : other));
}

static inline void kn_norm_add_bounds(kn_norm_launcher *l, kn_activation activation)
{
    const kn_bounds bounds = kn_bounds_of(activation);

    kn_norm_add(l, kn_arg_real(l->dtype, bounds.low));
    kn_norm_add(l, kn_arg_real(l->dtype, bounds.high));
}

/* The operands of every backward step. */
static inline void kn_norm_add_operands(kn_norm_launcher *l, const kn_batch_backward *b)
{
    kn_norm_add_tensor(l, b->gradient, NULL);
    kn_norm_add_tensor(l, b->x, NULL);
    kn_norm_add_tensor(l, b->weight, b->x);
    kn_norm_add_tensor(l, b->bias, b->x);
    kn_norm_add_tensor(l, b->table, NULL);
    kn_norm_add_bounds(l, b->activation);
    kn_norm_add(l, kn_arg_i32(kn_batch_backward_flags(b)));
}

/* Launches with the arguments added so far, and clears them. */
static inline kn_status kn_norm_launch(kn_norm_launcher *l, const char *kernel, kn_work_size work)
{
    const int count = l->count;

    l->count = 0;
    return kn_run(l->stream, .source = l->source, .options = l->options, .kernel = kernel, .operation = l->operation,
                  .dims = 1, .global = {work.global}, .local = {work.local}, .args = l->args, .num_args = count);
}
