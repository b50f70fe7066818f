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

static kn_tensor *build_l1(kn_tensor *const *x, const void *reduction)
{
    return kn_l1_loss(x[0], x[1], *(const kn_reduction *)reduction);
}

static kn_tensor *build_soft_margin(kn_tensor *const *x, const void *reduction)
{
    return kn_soft_margin_loss(x[0], x[1], *(const kn_reduction *)reduction);
}

static kn_tensor *build_bce_of_probabilities(kn_tensor *const *x, const void *reduction)
{
    return kn_binary_cross_entropy(x[0], x[1], .weight = x[2], .reduction = *(const kn_reduction *)reduction);
}

#define BUILD(name)                                                                                                    \
    static kn_tensor *build_##name(kn_tensor *const *x, const void *params)                                            \
    {                                                                                                                  \
        return kn_##name##_with(x[0], x[1], params);                                                                   \
    }
BUILD(smooth_l1_loss)
BUILD(huber_loss)
BUILD(kl_div)
BUILD(poisson_nll_loss)
BUILD(hinge_embedding_loss)

static kn_tensor *build_gaussian(kn_tensor *const *x, const void *params)
{
    return kn_gaussian_nll_loss_with(x[0], x[1], x[2], params);
}

static kn_tensor *build_ranking(kn_tensor *const *x, const void *params)
{
    return kn_margin_ranking_loss_with(x[0], x[1], x[2], params);
}

static kn_tensor *lengths(int64_t first, int64_t second)
{
    return kn_from_data(((int64_t[]){first, second}), KN_SHAPE(2), .dtype = KN_I64);
}

/* Of [9, 2, C]: one sample uses all steps, the other has fewer labels. */
static kn_tensor *build_ctc(kn_tensor *const *x, const void *params)
{
    const int64_t steps = kn_size(x[0], 0), labels = kn_size(x[1], kn_ndim(x[1]) - 1);
    return kn_ctc_loss_with(kn_log_softmax(x[0], 2), x[1], lengths(steps, steps - 2), lengths(labels, labels / 2),
                            params);
}

/* NaN in a log-probability stays, where it is all that a state has, too; infinity counts only where alignments go. */
static kn_tensor *build_ctc_of_nan(kn_tensor *const *x, const void *params)
{
    enum { STEPS = 6, SAMPLES = 2, CLASSES = 5 };
    double more[STEPS * SAMPLES * CLASSES] = {[4] = NAN, [CLASSES + 3] = INFINITY}; /* of the first step */
    kn_tensor *added = kn_from_data(more, KN_SHAPE(STEPS, SAMPLES, CLASSES), .dtype = KN_F64);
    kn_tensor *log_probs = kn_add(kn_log_softmax(x[0], 2), kn_to_dtype(added, kn_dtype_of(x[0])));
    kn_tensor *labels = kn_from_data(((int64_t[]){0, 1, 2, 3}), KN_SHAPE(SAMPLES, 2), .dtype = KN_I64);
    return kn_ctc_loss_with(log_probs, labels, lengths(STEPS, STEPS), lengths(2, 2), params);
}

/* clang-format off */
#define CTC(...) &(const kn_ctc_loss_params){KN_CTC_LOSS_DEFAULTS, __VA_ARGS__}
#define SMOOTH_L1(...) &(const kn_smooth_l1_loss_params){KN_SMOOTH_L1_LOSS_DEFAULTS, __VA_ARGS__}
#define HUBER(...) &(const kn_huber_loss_params){KN_HUBER_LOSS_DEFAULTS, __VA_ARGS__}
#define KL(...) &(const kn_kl_div_params){KN_KL_DIV_DEFAULTS, __VA_ARGS__}
#define POISSON(...) &(const kn_poisson_nll_loss_params){KN_POISSON_NLL_LOSS_DEFAULTS, __VA_ARGS__}
#define GAUSS(...) &(const kn_gaussian_nll_loss_params){KN_GAUSSIAN_NLL_LOSS_DEFAULTS, __VA_ARGS__}
#define HINGE(...) &(const kn_hinge_embedding_loss_params){KN_HINGE_EMBEDDING_LOSS_DEFAULTS, __VA_ARGS__}
#define RANKING(...) &(const kn_margin_ranking_loss_params){KN_MARGIN_RANKING_LOSS_DEFAULTS, __VA_ARGS__}
#define EACH .reduction = KN_REDUCTION_NONE
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
    {"l1_loss/mean", build_l1, {DISTINCT(7, 5), FLOATS_IN(-0.02, 0.02, 7, 5)}, REDUCE(MEAN)},
    {"l1_loss/none", build_l1, {DISTINCT(7, 5), FLOATS_IN(-0.02, 0.02, 7, 5)}, REDUCE(NONE), .full = true},
    {"l1_loss/long", build_l1, {DISTINCT(65537), CONSTANTS_IN(-1e-6, 1e-6, 65537)}, REDUCE(MEAN), .no_gradient = true, .full = true},
    {"smooth_l1_loss/mean", build_smooth_l1_loss, {LOGITS(7, 5), LOGITS(7, 5)}, SMOOTH_L1(.beta = 0.75)},
    {"smooth_l1_loss/none", build_smooth_l1_loss, {LOGITS(7, 5), LOGITS(5)}, SMOOTH_L1(EACH), .full = true},
    {"huber_loss/mean", build_huber_loss, {LOGITS(7, 5), LOGITS(7, 5)}, HUBER(.delta = 1.5)},
    {"huber_loss/none", build_huber_loss, {LOGITS(7, 5), LOGITS(5)}, HUBER(EACH), .full = true},
    {"binary_cross_entropy/mean", build_bce_of_probabilities, {FLOATS_IN(0.1, 0.9, 7, 5), CONSTANTS_IN(0, 1, 7, 5)}, REDUCE(MEAN)},
    {"binary_cross_entropy/weighted", build_bce_of_probabilities,
     {FLOATS_IN(0.1, 0.9, 7, 5), FLOATS_IN(0, 1, 7, 5), WEIGHTS(5)}, REDUCE(NONE), .full = true},
    {"kl_div/mean", build_kl_div, {LOGITS(7, 5), FLOATS_IN(0.1, 0.9, 7, 5)}, KL(.reduction = KN_REDUCTION_BATCHMEAN)},
    {"kl_div/log_target", build_kl_div, {LOGITS(7, 5), LOGITS(7, 5)}, KL(.log_target = true, EACH), .full = true},
    {"poisson_nll_loss/log", build_poisson_nll_loss, {LOGITS(7, 5), FLOATS_IN(1.1, 4, 7, 5)}, POISSON(.full = true)},
    {"poisson_nll_loss/rate", build_poisson_nll_loss, {FLOATS_IN(0.5, 3, 7, 5), FLOATS_IN(1.1, 4, 7, 5)},
     POISSON(.log_input = false, .full = true, EACH), .full = true},
    {"gaussian_nll_loss/mean", build_gaussian, {LOGITS(7, 5), LOGITS(7, 5), FLOATS_IN(0.5, 2, 7, 5)}, GAUSS(.full = true)},
    {"gaussian_nll_loss/columns", build_gaussian, {LOGITS(7, 5), LOGITS(7, 5), FLOATS_IN(0.5, 2, 7)}, GAUSS(EACH), .full = true},
    {"soft_margin_loss/mean", build_soft_margin, {LOGITS(7, 5), LOGITS(7, 5)}, REDUCE(MEAN)},
    {"soft_margin_loss/none", build_soft_margin, {LOGITS(7, 5), LOGITS(7, 5)}, REDUCE(NONE), .full = true},
    {"hinge_embedding_loss/mean", build_hinge_embedding_loss, {LOGITS(7, 5), WHOLE(KN_I64, -1, 2, 7, 5)}, HINGE(.margin = 4)},
    {"ctc_loss/none", build_ctc, {LOGITS(9, 2, 5), INDICES(4, 2, 3)}, CTC(.blank = 4, EACH), 9, .reads = true},
    {"ctc_loss/many_labels", build_ctc, {LOGITS(61, 2, 7), INDICES(6, 2, 29)}, CTC(.blank = 6, EACH), 61, .reads = true},
    {"ctc_loss/nan", build_ctc_of_nan, {CONSTANTS_IN(-3, 3, 6, 2, 5)}, CTC(.blank = 4, EACH), 6, .reads = true},
    {"margin_ranking_loss/mean", build_ranking, {LOGITS(7, 5), LOGITS(7, 5), CONSTANTS_IN(0.5, 1, 7, 5)}, RANKING(.margin = 0.5)},
    {"bce_with_logits/empty", build_bce, {LOGITS(0, 5), CONSTANTS_IN(0, 1, 0, 5)}, REDUCE(SUM)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(loss_rows, rows, .has_golden = true, .engine = "ctc_loss");
