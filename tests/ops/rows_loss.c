/* rows_loss.c - losses with all reductions. */
#include "ops/rows.h"

/* Input 2, if there is one, is the weight of the classes. */
static kn_tensor *build_cross_entropy(kn_tensor *const *x, const void *params)
{
    kn_cross_entropy_params with_weight = *(const kn_cross_entropy_params *)params;
    with_weight.weight = x[2];
    return kn_cross_entropy_with(x[0], x[1], &with_weight);
}

static kn_tensor *build_nll(kn_tensor *const *x, const void *params)
{
    kn_cross_entropy_params with_weight = *(const kn_cross_entropy_params *)params;
    with_weight.weight = x[2];
    return kn_nll_loss_with(kn_log_softmax(x[0], 1), x[1], &with_weight);
}

static kn_tensor *build_mse(kn_tensor *const *x, const void *reduction)
{
    return kn_mse_loss(x[0], x[1], *(const kn_reduction *)reduction);
}

static kn_tensor *build_bce(kn_tensor *const *x, const void *reduction)
{
    return kn_binary_cross_entropy_with_logits(x[0], x[1], NULL, NULL, *(const kn_reduction *)reduction);
}

static kn_tensor *build_bce_weighted(kn_tensor *const *x, const void *reduction)
{
    return kn_binary_cross_entropy_with_logits(x[0], x[1], x[2], x[3], *(const kn_reduction *)reduction);
}

/* clang-format off */
#define CE(...) &(const kn_cross_entropy_params){KN_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__}
#define REDUCE(how) &(const kn_reduction){KN_REDUCTION_##how}
#define LOGITS(...) FLOATS_IN(-3, 3, __VA_ARGS__)
#define WEIGHTS(...) CONSTANTS_IN(0.2, 2, __VA_ARGS__)

/* The three reductions of one case, or the mean alone. */
#define THREE(name, build, inputs, ...)                                                                                \
    {name "/mean", build, inputs, CE(.reduction = KN_REDUCTION_MEAN, __VA_ARGS__)},                                    \
        {name "/sum", build, inputs, CE(.reduction = KN_REDUCTION_SUM, __VA_ARGS__)},                                  \
        {name "/none", build, inputs, CE(.reduction = KN_REDUCTION_NONE, __VA_ARGS__)}
#define MEAN(name, build, inputs, ...)                                                                                 \
    {name "/mean", build, inputs, CE(.reduction = KN_REDUCTION_MEAN, __VA_ARGS__), .on_cpu = true}
#define BOTH(a, b) {a, b}
#define ALL_THREE(a, b, c) {a, b, c}
#define SMOOTH .label_smoothing = 0.2

OP_ROWS_BEGIN
static const op_row rows[] = {
    THREE("cross_entropy/indices", build_cross_entropy, BOTH(LOGITS(7, 5), INDICES(5, 7)), .label_smoothing = 0),
    MEAN("cross_entropy/weighted", build_cross_entropy, ALL_THREE(LOGITS(7, 5), INDICES(5, 7), WEIGHTS(5)),
         .label_smoothing = 0),
    MEAN("cross_entropy/ignored", build_cross_entropy, ALL_THREE(LOGITS(7, 5), INDICES(5, 7), WEIGHTS(5)),
         .ignore_index = 2),
    MEAN("cross_entropy/smoothed", build_cross_entropy, BOTH(LOGITS(7, 5), INDICES(5, 7)), SMOOTH),
    THREE("cross_entropy/all", build_cross_entropy, ALL_THREE(LOGITS(7, 5), INDICES(5, 7), WEIGHTS(5)),
          SMOOTH, .ignore_index = 1),
    MEAN("cross_entropy/spatial", build_cross_entropy, ALL_THREE(LOGITS(2, 4, 3, 2), INDICES(4, 2, 3, 2), WEIGHTS(4)),
         SMOOTH),
    MEAN("cross_entropy/shares", build_cross_entropy, BOTH(LOGITS(7, 5), SHARES(7, 5)), .label_smoothing = 0),
    THREE("cross_entropy/shares_all", build_cross_entropy, ALL_THREE(LOGITS(2, 4, 3), SHARES(2, 4, 3), WEIGHTS(4)),
          SMOOTH),
    {"cross_entropy/layouts", build_cross_entropy, {LOGITS(7, 5), INDICES(5, 7), WEIGHTS(5)}, CE(SMOOTH),
     .layouts = true},
    {"cross_entropy/int32", build_cross_entropy, {LOGITS(7, 5), WHOLE(KN_I32, 0, 5, 7)}, CE(SMOOTH), .on_cpu = true},
    {"cross_entropy/uint8", build_cross_entropy, {LOGITS(7, 5), WHOLE(KN_U8, 0, 5, 7)}, CE(SMOOTH), .on_cpu = true},
    {"cross_entropy/one_class", build_cross_entropy, {LOGITS(7, 1), INDICES(1, 7)}, CE(.label_smoothing = 0),
     .on_cpu = true},
    {"cross_entropy/batch", build_cross_entropy, {LOGITS(128, 10), INDICES(10, 128)}, CE(.label_smoothing = 0),
     .on_cpu = true},
    {"cross_entropy/many", build_cross_entropy, {LOGITS(2053, 3), INDICES(3, 2053)}, CE(.label_smoothing = 0)},
    {"cross_entropy/many_classes", build_cross_entropy, {LOGITS(3, 5003), INDICES(5003, 3)}, CE(SMOOTH), 5003},
    {"cross_entropy/blocks", build_cross_entropy, {LOGITS(701, 100), INDICES(100, 701), WEIGHTS(100)}, CE(SMOOTH, .ignore_index = 3), 701},
    {"cross_entropy/blocks_of_pixels", build_cross_entropy, {LOGITS(3, 5, 300), INDICES(5, 3, 300)}, CE(.label_smoothing = 0), 900},
    {"cross_entropy/blocks_apart", build_cross_entropy, {LOGITS(67, 1000), INDICES(1000, 67)}, CE(SMOOTH, .reduction = KN_REDUCTION_NONE), 1000},
    {"cross_entropy/empty_mean", build_cross_entropy, {LOGITS(0, 5), INDICES(5, 0)}, CE(.label_smoothing = 0),
     .no_gradient = true},
    {"cross_entropy/empty_sum", build_cross_entropy, {LOGITS(0, 5), INDICES(5, 0)}, CE(.reduction = KN_REDUCTION_SUM)},
    {"cross_entropy/empty_none", build_cross_entropy, {LOGITS(0, 5), INDICES(5, 0)},
     CE(.reduction = KN_REDUCTION_NONE)},
    MEAN("nll_loss/indices", build_nll, BOTH(LOGITS(7, 5), INDICES(5, 7)), .label_smoothing = 0),
    THREE("nll_loss/weighted", build_nll, ALL_THREE(LOGITS(7, 5), INDICES(5, 7), WEIGHTS(5)), .ignore_index = 3),
    MEAN("nll_loss/spatial", build_nll, ALL_THREE(LOGITS(2, 4, 3, 2), INDICES(4, 2, 3, 2), WEIGHTS(4)),
         .label_smoothing = 0),
    {"nll_loss/layouts", build_nll, {LOGITS(7, 5), INDICES(5, 7), WEIGHTS(5)}, CE(.label_smoothing = 0),
     .layouts = true},
    {"mse_loss/mean", build_mse, {FLOATS(7, 5), FLOATS(7, 5)}, REDUCE(MEAN), .layouts = true},
    {"mse_loss/sum", build_mse, {FLOATS(7, 5), FLOATS(7, 5)}, REDUCE(SUM)},
    {"mse_loss/none", build_mse, {FLOATS(7, 5), FLOATS(7, 5)}, REDUCE(NONE), .on_cpu = true},
    {"mse_loss/broadcast", build_mse, {FLOATS(7, 5), FLOATS(5)}, REDUCE(MEAN), .on_cpu = true},
    {"mse_loss/long", build_mse, {FLOATS(65537, 1), FLOATS(65537, 1)}, REDUCE(MEAN)},
    {"mse_loss/empty", build_mse, {FLOATS(0, 5), FLOATS(0, 5)}, REDUCE(SUM)},
    {"mse_loss/empty_mean", build_mse, {FLOATS(0, 5), FLOATS(0, 5)}, REDUCE(MEAN), .no_gradient = true},
    {"bce_with_logits/mean", build_bce, {LOGITS(7, 5), CONSTANTS_IN(0, 1, 7, 5)}, REDUCE(MEAN), .layouts = true},
    {"bce_with_logits/sum", build_bce, {LOGITS(7, 5), CONSTANTS_IN(0, 1, 7, 5)}, REDUCE(SUM), .on_cpu = true},
    {"bce_with_logits/none", build_bce, {LOGITS(7, 5), CONSTANTS_IN(0, 1, 7, 5)}, REDUCE(NONE), .on_cpu = true},
    {"bce_with_logits/weighted", build_bce_weighted, {LOGITS(7, 5), CONSTANTS_IN(0, 1, 7, 5), WEIGHTS(7, 1), WEIGHTS(5)},
     REDUCE(MEAN), .layouts = true},
    {"bce_with_logits/weighted_none", build_bce_weighted, {LOGITS(7, 5), CONSTANTS_IN(0, 1, 7, 5), WEIGHTS(5), WEIGHTS(1)},
     REDUCE(NONE), .on_cpu = true},
    {"bce_with_logits/long", build_bce, {LOGITS(4099, 3), CONSTANTS_IN(0, 1, 4099, 3)}, REDUCE(MEAN)},
    {"bce_with_logits/empty", build_bce, {LOGITS(0, 5), CONSTANTS_IN(0, 1, 0, 5)}, REDUCE(SUM)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(loss_rows, rows);
