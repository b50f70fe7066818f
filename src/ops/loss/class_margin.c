/* ops/loss/class_margin.c - margins between the scores of classes: compositions. */
#include <koine/index.h>
#include <koine/loss.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "ops/loss/distance.h"
#include "ops/pointwise/elementwise.h"

enum { X, TARGET, WEIGHT };

static kn_tensor *like(const kn_tensor *x, kn_dtype dtype, double value)
{
    return kn_full_with(0, NULL, kn_scalar_real(value),
                        &(kn_tensor_options){.dtype = dtype, .device = x->storage->device});
}

/* 0 .. C - 1. */
static kn_tensor *classes_of(const kn_tensor *x, int64_t count)
{
    return kn_arange_with(0, (double)count, 1, &(kn_tensor_options){.dtype = KN_I64, .device = x->storage->device});
}

/* [C] as [1, C]. */
static kn_tensor *as_rows(kn_tensor *x) { return x->ndim == 1 ? kn_unsqueeze(x, 0) : x; }

/* --- one class per row -------------------------------------------------------------------------------------------- */

static kn_status check_multi(const kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[X], *target = entry->inputs[TARGET], *weight = entry->inputs[WEIGHT];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    const bool fits = x->ndim == 1 ? kn_numel(target) == 1 : target->ndim == 1 && target->shape[0] == x->shape[0];
    if (x->ndim < 1 || x->ndim > 2 || !fits || x->shape[x->ndim - 1] == 0)
        return kn_fail(KN_ERR_SHAPE, "target %s does not fit input %s: [N, C] needs [N], [C] one class",
                       kn_tensor_describe(b, sizeof b, target), kn_tensor_describe(a, sizeof a, x));
    if (weight && (weight->ndim != 1 || weight->shape[0] != x->shape[x->ndim - 1]))
        return kn_fail(KN_ERR_SHAPE, "weight %s must hold one number for each of the %lld classes",
                       kn_tensor_describe(a, sizeof a, weight), (long long)x->shape[x->ndim - 1]);
    return KN_OK;
}

/* The negative log-likelihood without a logarithm selects by class, and reports one out of range. */
static kn_tensor *of_target(kn_tensor *x, kn_tensor *target, kn_tensor *weight)
{
    return kn_unsqueeze(
        kn_neg(kn_nll_loss(x, target, .weight = weight, .ignore_index = INT64_MIN, .reduction = KN_REDUCTION_NONE)), 1);
}

static kn_status multi_margin_enter(kn_entry *entry)
{
    const kn_multi_margin_loss_args *args = entry->params;
    KN_TRY(check_multi(entry));
    kn_tensor *x = as_rows(entry->inputs[X]), *target = kn_reshape(entry->inputs[TARGET], 1, (const int64_t[]){-1});
    kn_tensor *weight = entry->inputs[WEIGHT];
    const int64_t classes = entry->inputs[X]->shape[entry->inputs[X]->ndim - 1];
    const int last = 1;
    if (!x || !target)
        return kn_error_status();
    kn_tensor *above = kn_add_scalar(kn_sub(x, of_target(x, target, NULL)), args->margin);
    kn_tensor *hinge = kn_relu(above);
    hinge = args->p == 2 ? kn_square(hinge) : hinge;
    kn_tensor *hot = kn_eq(kn_unsqueeze(kn_to_dtype(target, KN_I64), 1), classes_of(x, classes));
    hinge = kn_where(hot, like(x, x->dtype, 0), hinge);
    if (weight)
        hinge = kn_mul(hinge, of_target(kn_ones_like(x), target, weight));
    kn_tensor *loss = kn_mul_scalar(kn_sum_dims(hinge, &last, 1, false), 1.0 / (double)classes);
    if (entry->inputs[X]->ndim == 1)
        loss = kn_reshape(loss, 0, NULL);
    return kn_composed_give(entry, kn_loss_reduced(loss, args->reduction));
}

static const kn_op_param multi_margin_rows[] = {KN_PARAM(kn_multi_margin_loss_args, p, .min = 1, .max = 2),
                                                KN_REDUCTION_ROW(kn_multi_margin_loss_args),
                                                KN_PARAM(kn_multi_margin_loss_args, margin)};
const kn_op kn_multi_margin_loss_op = {.name = "multi_margin_loss",
                                       .inputs = {"input", "target", "?weight"},
                                       .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_INDICES | 1u << KN_U8},
                                       .dtypes[WEIGHT] = KN_DTYPES_FLOATING,
                                       .params =
                                           KN_PARAMS(kn_multi_margin_loss_args, multi_margin_rows, .p = 1, .margin = 1),
                                       .composes = true,
                                       .enter = multi_margin_enter};

kn_multi_margin_loss_params kn_multi_margin_loss_params_init(void)
{
    return (kn_multi_margin_loss_params){KN_MULTI_MARGIN_LOSS_DEFAULTS};
}

kn_tensor *kn_multi_margin_loss_with(kn_tensor *input, kn_tensor *target, const kn_multi_margin_loss_params *params)
{
    params = params ? params : &(kn_multi_margin_loss_params){KN_MULTI_MARGIN_LOSS_DEFAULTS};
    const kn_multi_margin_loss_args args = {params->p, params->reduction, params->margin};
    return kn_invoke(&kn_multi_margin_loss_op, &args, input, target, params->weight);
}

/* --- several classes per row -------------------------------------------------------------------------------------- */

static kn_status check_rows(const kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[X], *target = entry->inputs[TARGET];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (x->ndim >= 1 && x->ndim <= 2 && kn_same_shape(x, target) && x->shape[x->ndim - 1] > 0)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "target %s does not fit input %s: both are [N, C] or [C]",
                   kn_tensor_describe(b, sizeof b, target), kn_tensor_describe(a, sizeof a, x));
}

/* How often each class is a target of its row, [N, C], from targets [N, C] up to the first negative one. A class out of
 * range is reported by scatter_add. */
static kn_tensor *count_targets(const kn_tensor *x, kn_tensor *target)
{
    kn_tensor *zero = like(x, KN_I64, 0), *ends = kn_to_dtype(kn_lt(target, zero), KN_I64);
    kn_tensor *is_counted = kn_to_dtype(kn_eq(kn_cumsum(ends, 1), zero), KN_I64);
    return kn_scatter_add(kn_zeros_like(target), 1, kn_clamp(target, .min = 0), is_counted);
}

/* Of the score a of another class, -infinity if it is none, and the score b of a target that is one c times. */
#define MARGIN "(1 + (a - b))"
#define PAIRED(value) "c == 0 || (a < 0 && a + a == a) || " MARGIN " <= 0 ? (T)0 : " value
KN_ELEMENTWISE_TABLE(hinges, KN_FLOATS, "abc", NULL, KN_NO_VECTORS, PAIRED("c * " MARGIN),
                     KN_GRADIENTS(PAIRED("g * c"), PAIRED("-(g * c)")),
                     c == 0 || a == -INFINITY || 1 + (a - b) <= 0 ? 0 : c * (1 + (a - b)));
static const kn_op hinges_op = KN_ELEMENTWISE_OP("multilabel_margin_loss", false, true, &hinges_table,
                                                 KN_DTYPES_FLOATING, KN_NO_PARAMS, "others", "targets", "counts");

static kn_status multilabel_enter(kn_entry *entry)
{
    KN_TRY(check_rows(entry));
    kn_tensor *x = as_rows(entry->inputs[X]), *target = as_rows(kn_to_dtype(entry->inputs[TARGET], KN_I64));
    const int64_t classes = entry->inputs[X]->shape[entry->inputs[X]->ndim - 1];
    if (!x || !target)
        return kn_error_status();
    kn_tensor *count = kn_to_dtype(count_targets(x, target), x->dtype), *none = like(x, x->dtype, -INFINITY);
    kn_tensor *others = kn_where(kn_ne_scalar(count, 0), none, x);
    kn_tensor *loss = kn_invoke(&hinges_op, NULL, kn_unsqueeze(others, 1), kn_unsqueeze(x, 2),
                                kn_unsqueeze(count, 2)); /* [N, target, other] */
    loss = kn_sum_dims(loss, (const int[]){1, 2}, 2, false);
    loss = kn_mul_scalar(loss, 1.0 / (double)classes);
    if (entry->inputs[X]->ndim == 1)
        loss = kn_reshape(loss, 0, NULL);
    return kn_composed_give(entry, kn_loss_reduced(loss, ((const kn_reduction_args *)entry->params)->reduction));
}

const kn_op kn_multilabel_margin_loss_op = {
    .name = "multilabel_margin_loss",
    .inputs = {"input", "target"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_INDICES},
    .params = KN_PARAMS(kn_reduction_args, kn_reduction_rows, .reduction = KN_REDUCTION_MEAN),
    .composes = true,
    .enter = multilabel_enter};

kn_tensor *kn_multilabel_margin_loss(kn_tensor *input, kn_tensor *target, kn_reduction reduction)
{
    return kn_invoke(&kn_multilabel_margin_loss_op, &(kn_reduction_args){reduction}, input, target);
}

/* The mean over the last dimension of binary cross entropies, which have no targets -1. */
static kn_status soft_enter(kn_entry *entry)
{
    const kn_reduction reduction = ((const kn_reduction_args *)entry->params)->reduction;
    kn_tensor *x = entry->inputs[X], *target = entry->inputs[TARGET], *weight = entry->inputs[WEIGHT];
    const int last = -1;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (x->ndim == 0 || x->shape[x->ndim - 1] == 0 || !kn_same_shape(x, target))
        return kn_fail(KN_ERR_SHAPE, "target %s does not fit input %s: both are [..., C]",
                       kn_tensor_describe(b, sizeof b, target), kn_tensor_describe(a, sizeof a, x));
    if (reduction != KN_REDUCTION_NONE) {
        kn_tensor *loss = kn_binary_cross_entropy_with_logits(x, target, weight, NULL, reduction);
        return kn_composed_give(
            entry, reduction == KN_REDUCTION_MEAN ? loss : kn_mul_scalar(loss, 1.0 / (double)x->shape[x->ndim - 1]));
    }
    return kn_composed_give(
        entry, kn_mean_dims(kn_binary_cross_entropy_with_logits(x, target, weight, NULL, reduction), &last, 1, false));
}

const kn_op kn_multilabel_soft_margin_loss_op = {
    .name = "multilabel_soft_margin_loss",
    .inputs = {"input", "target", "?weight"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_ALL, KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_reduction_args, kn_reduction_rows, .reduction = KN_REDUCTION_MEAN),
    .composes = true,
    .enter = soft_enter};

kn_tensor *kn_multilabel_soft_margin_loss_with(kn_tensor *input, kn_tensor *target, const kn_loss_params *params)
{
    params = params ? params : &(kn_loss_params){KN_LOSS_DEFAULTS};
    return kn_invoke(&kn_multilabel_soft_margin_loss_op, &(kn_reduction_args){params->reduction}, input, target,
                     params->weight);
}
