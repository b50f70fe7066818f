/* defaults.h - rows that call a function with a parameter struct in three ways: see test_defaults.c. Each
 * defaults_*.c is a table of rows for one part of the interface. */
#pragma once

#include <koine/koine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"

/* A row: the outcomes of the plain function with `params` and of the macro. ROW: both succeed. NEEDS: without arguments
 * both fail alike, because something is required. GIVEN: both with the same arguments. */
#define CALLS(name, type, show, with, macro)                                                                           \
    static char *name##_with_params(const void *pointer)                                                               \
    {                                                                                                                  \
        const type *params = pointer;                                                                                  \
        return show(with);                                                                                             \
    }                                                                                                                  \
    static char *name##_by_macro(void) { return show(macro); }                                                         \
    static const void *name##_initialised(void)                                                                        \
    {                                                                                                                  \
        static type params;                                                                                            \
        params = type##_init();                                                                                        \
        return &params;                                                                                                \
    }

typedef struct defaults_row {
    const char *name;
    char *(*with)(const void *params);
    char *(*macro)(void);
    const void *(*initialised)(void);
    void (*give)(void *params); /* NULL: none */
    bool fails;
} defaults_row;

typedef struct defaults_table {
    const defaults_row *rows;
    int count;
} defaults_table;
/* clang-format off */
#define DEFAULTS_TABLES(X) \
    X(features) \
    X(functions) \
    X(groups) \
    X(images) \
    X(in_place) \
    X(index) \
    X(losses) \
    X(modules) \
    X(optim) \
    X(sort) \
    X(tensors) \
    X(text) \
    X(training) \
    X(user_code) \
    X(vision)
/* clang-format on */

#define DEFAULTS_DECLARED(family) extern const defaults_table family##_defaults;
DEFAULTS_TABLES(DEFAULTS_DECLARED)

#define ENTRY(name, give, fails)                                                                                       \
    {                                                                                                                  \
#name, name##_with_params, name##_by_macro, name##_initialised, give, fails                                    \
    }
#define ROW(name) ENTRY(name, NULL, false)
#define NEEDS(name) ENTRY(name, NULL, true)
#define GIVEN(name, give) ENTRY(name, give, false)

/* The end of a file: DEFAULTS(optim_defaults, ROW(kn_optim_sgd), ...) */
#define DEFAULTS(name, ...)                                                                                            \
    static const defaults_row rows[] = {__VA_ARGS__};                                                                  \
    const defaults_table name = {rows, (int)(sizeof rows / sizeof rows[0])};

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static inline kn_tensor *ramp(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    return kn_reshape(kn_mul_scalar(kn_to_dtype(kn_arange(-3, (double)count - 3, 1), KN_F32), 0.37), ndim, shape);
}
static inline kn_tensor *image(void) { return ramp(KN_SHAPE(1, 2, 6, 6)); }
static inline kn_tensor *weight(void) { return ramp(KN_SHAPE(3, 2, 3, 3)); }
static inline kn_tensor *signal(void) { return ramp(KN_SHAPE(1, 2, 7)); }
static inline kn_tensor *weight1d(void) { return ramp(KN_SHAPE(2, 2, 3)); }
static inline kn_tensor *volume(void) { return ramp(KN_SHAPE(1, 2, 3, 4, 5)); }
static inline kn_tensor *weight3d(void) { return ramp(KN_SHAPE(2, 2, 2, 3, 2)); }
static inline kn_tensor *matrix(void) { return ramp(KN_SHAPE(4, 3)); }
/* One target is -100, the class to ignore, and one is 0, which is not ignored. */
static inline kn_tensor *classes(void)
{
    return kn_from_data(((int64_t[]){2, 0, -100, 1}), KN_SHAPE(4), .dtype = KN_I64);
}
static inline kn_tensor *mean(void) { return kn_full(KN_SHAPE(2), 0.5); }
static inline void give_2(void *params) { ((kn_pool_params *)params)->kernel_size = 2; }
static inline void give_3(void *params)
{
    ((kn_pool_params *)params)->kernel_size = 3;
    ((kn_pool_params *)params)->padding = 1;
}
