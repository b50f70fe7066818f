/* rank_case.h - a rank that runs cases together with the others of its group: cmocka cannot be used there, as ranks are
 * threads or processes; failures are counted and printed. */
#pragma once

#include <koine/koine.h>
#include <math.h>
#include <stdio.h>

typedef struct state {
    kn_group *group;
    kn_device *device;
    int rank, size, failures;
} state;

typedef void (*rank_case)(state *s);

static inline bool expect(state *s, bool holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "rank %d of %d: line %d: %s (%s)\n", s->rank, s->size, line, what, kn_error_message());
        s->failures++;
    }
    kn_error_clear();
    return holds;
}
#define EXPECT(condition) expect(s, condition, #condition, __LINE__)
#define EXPECT_OK(call) expect(s, (call) == KN_OK, #call, __LINE__)

/* The host has it, some devices don't. */
static inline bool has_f64(kn_device *device)
{
    kn_device_properties properties;
    return device == kn_device_host() || (kn_device_get_properties(device, &properties) == KN_OK && properties.has_f64);
}

static inline double value_at(kn_tensor *tensor, int64_t i)
{
    kn_tensor *host = kn_to_device(tensor, kn_device_host(), .dtype = KN_F64);
    const double *values = kn_data(host);
    return values ? values[i] : NAN;
}

/* A view of x's memory with these sizes and strides, from element `first` on: the host runs no operations that make
 * one. */
static inline kn_tensor *view(kn_tensor *x, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                              int64_t first)
{
    kn_storage *storage = kn_storage_of(x);
    kn_tensor *made = kn_tensor_from_storage(storage, kn_dtype_of(x), 2, (const int64_t[]){rows, columns},
                                             (const int64_t[]){row_stride, column_stride}, first);
    kn_storage_release(storage);
    return made;
}

/* All cases in turn; returns the number of failures. */
static inline int run_cases(const rank_case *cases, size_t count, kn_group *group, kn_device *device)
{
    state s = {group, device, kn_group_rank(group), kn_group_size(group), 0};
    for (size_t i = 0; i < count; i++) {
        KN_SCOPE;
        cases[i](&s);
    }
    return s.failures;
}
