/* rows_activation.c - softmax along any dimension, and dropout. (relu, sigmoid and tanh are in rows_unary.c.) */
#include "ops/rows.h"

#define DIM(d)                                                                                                         \
    &(const int) { d }

static kn_tensor *build_softmax(kn_tensor *const *x, const void *dim) { return kn_softmax(x[0], *(const int *)dim); }

static kn_tensor *build_log_softmax(kn_tensor *const *x, const void *dim)
{
    return kn_log_softmax(x[0], *(const int *)dim);
}

/* The harness seeds the generator before each build, so the mask is always the same. */
static kn_tensor *build_dropout(kn_tensor *const *x, const void *params) { return kn_dropout_with(x[0], params); }

static kn_tensor *build_dropout2d(kn_tensor *const *x, const void *params) { return kn_dropout2d_with(x[0], params); }

/* clang-format off */
#define DROP(probability, is_training) &(const kn_dropout_params){.p = probability, .training = is_training}

#define ALONG(name, build)                                                                                             \
    {name "/last", build, {FLOATS_IN(-3, 3, 7, 11)}, DIM(-1), .layouts = true},                                        \
        {name "/first", build, {FLOATS_IN(-3, 3, 7, 11)}, DIM(0), .layouts = true},                                    \
        {name "/channels", build, {FLOATS_IN(-3, 3, 2, 5, 3, 2)}, DIM(1)},                                             \
        {name "/vector", build, {FLOATS_IN(-3, 3, 13)}, DIM(0)}, {name "/one", build, {FLOATS(5, 1)}, DIM(1)},         \
        {name "/empty", build, {FLOATS(0, 5)}, DIM(1)}, {name "/batch", build, {FLOATS_IN(-3, 3, 128, 10)}, DIM(1)},   \
        {name "/long", build, {FLOATS_IN(-3, 3, 3, 10007)}, DIM(1), 10007},                                            \
        {name "/many", build, {FLOATS_IN(-3, 3, 4099, 7)}, DIM(1)},                                                    \
        {name "/rows_of_33", build, {FLOATS_IN(-3, 3, 70, 33)}, DIM(1)},                                               \
        {name "/rows_of_257", build, {FLOATS_IN(-3, 3, 9, 257)}, DIM(1), 257},                                         \
        {name "/rows_of_4095", build, {FLOATS_IN(-3, 3, 3, 4095)}, DIM(1), 4095},                                      \
        {name "/rows_of_4097", build, {FLOATS_IN(-3, 3, 2, 4097)}, DIM(1), 4097},                                      \
        {name "/columns_of_4", build, {FLOATS_IN(-3, 3, 3, 4, 130)}, DIM(1)},                                          \
        {name "/columns_of_16", build, {FLOATS_IN(-3, 3, 2, 16, 9)}, DIM(1)},                                          \
        {name "/columns_of_17", build, {FLOATS_IN(-3, 3, 3, 17, 35)}, DIM(1)}

OP_ROWS_BEGIN
static const op_row rows[] = {
    ALONG("softmax", build_softmax),
    ALONG("log_softmax", build_log_softmax),
    {"dropout/half", build_dropout, {FLOATS(7, 11)}, DROP(0.5, true), .layouts = true},
    {"dropout/tenth", build_dropout, {FLOATS(1031)}, DROP(0.1, true)},
    {"dropout/none", build_dropout, {FLOATS(5, 7)}, DROP(0, true)},
    {"dropout/all", build_dropout, {FLOATS(5, 7)}, DROP(1, true)},
    {"dropout/evaluation", build_dropout, {FLOATS(5, 7)}, DROP(0.5, false)},
    {"dropout/empty", build_dropout, {FLOATS(0, 7)}, DROP(0.5, true)},
    {"dropout2d/half", build_dropout2d, {FLOATS(3, 5, 2, 3)}, DROP(0.5, true), .layouts = true},
    {"dropout2d/seed", build_dropout2d, {FLOATS(5, 64, 4, 4)}, DROP(0.1, true)},
    {"dropout2d/evaluation", build_dropout2d, {FLOATS(2, 3, 2, 2)}, DROP(0.5, false)},
    {"dropout2d/no_batch", build_dropout2d, {FLOATS(0, 3, 2, 2)}, DROP(0.5, true)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(activation_rows, rows, .has_golden = true, .engine = "softmax dropout dropout2d");
