/* ops/pointwise/drawn.c - operators with a drawn operand, which is saved for the backward pass: rrelu with a slope per
 * element, and alpha dropout, which keeps mean and variance of what SELU returns. */
#include <koine/activation.h>
#include <koine/dropout.h>
#include <koine/random.h>
#include <koine/tensor.h>
#include <math.h>

#include "ops/pointwise/elementwise.h"

/* A new operand with a 1 for each dimension from `ndim` on, to be filled with random numbers. */
static kn_status new_operand(kn_entry *entry, kn_dtype dtype, int ndim, kn_generator *generator)
{
    const kn_tensor *x = entry->inputs[0];
    int64_t shape[KN_MAX_DIMS];
    KN_TRY(kn_generator_check(generator, x->storage->device));
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d < ndim ? x->shape[d] : 1;
    entry->inputs[1] =
        kn_empty_with(x->ndim, shape, &(kn_tensor_options){.dtype = dtype, .device = x->storage->device});
    entry->num_inputs = 2;
    return entry->inputs[1] ? KN_OK : kn_error_status();
}

/* --- rrelu -------------------------------------------------------------------------------------------------------- */

KN_TWO_TENSORS(rrelu_drawn, KN_FLOATS, KN_NO_VECTORS, "a > 0 ? a : a * b", "a > 0 ? g : g * b", NULL,
               a > 0 ? a : a * b);
KN_ELEMENTWISE_TABLE(rrelu, KN_FLOATS, "a", "p", KN_NO_VECTORS, "a > 0 ? a : a * p", KN_GRADIENTS("a > 0 ? g : g * p"),
                     a > 0 ? a : a * p);
static const kn_op drawn_slopes_op =
    KN_ELEMENTWISE_OP("rrelu", false, true, &rrelu_drawn_table, KN_DTYPES_FLOATING, KN_NO_PARAMS, "x", "slopes");

static kn_status rrelu_enter(kn_entry *entry)
{
    const kn_rrelu_params *params = entry->params;
    kn_scalar_args *own = kn_entry_record(entry, sizeof *own);
    if (!(params->lower <= params->upper))
        return kn_fail(KN_ERR_ARGUMENT, "lower (%g) must not be greater than upper (%g)", params->lower, params->upper);
    own->values[0] = kn_scalar_real((params->lower + params->upper) / 2);
    if (!params->training)
        return KN_OK;
    entry->op = &drawn_slopes_op;
    KN_TRY(new_operand(entry, entry->inputs[0]->dtype, KN_MAX_DIMS, params->generator));
    return kn_uniform_(entry->inputs[1], params->lower, params->upper, .generator = params->generator)
               ? KN_OK
               : kn_error_status();
}

static const kn_op_param rrelu_rows[] = {KN_PARAM(kn_rrelu_params, lower), KN_PARAM(kn_rrelu_params, upper),
                                         KN_PARAM(kn_rrelu_params, training), KN_PARAM(kn_rrelu_params, generator)};
const kn_op kn_rrelu_op = {KN_ELEMENTWISE_FIELDS("rrelu", false, true, &rrelu_table),
                           .inputs = {"x"},
                           .dtypes = {KN_DTYPES_FLOATING},
                           .params = KN_PARAMS(kn_rrelu_params, rrelu_rows, KN_RRELU_DEFAULTS),
                           .composes = true,
                           .enter = rrelu_enter};
KN_PARAMS_FUNCTIONS(rrelu, RRELU)

/* --- alpha dropout ------------------------------------------------------------------------------------------------ */

/* Where b is true, kept: a p + q; else dropped: r. */
KN_ELEMENTWISE_TABLE(alpha_dropout, KN_FLOATS, "ab", "pqr", KN_NO_VECTORS, "b != 0 ? a * p + q : r",
                     KN_GRADIENTS("b != 0 ? g * p : g * 0", NULL), b != 0 ? a * p + q : r);

/* SELU's limit for x to -infinity, which dropped elements are set to before scaling. */
#define LIMIT 1.7580993408473766

static kn_status draw_mask(kn_entry *entry, int ndim)
{
    const kn_alpha_dropout_params *params = entry->params;
    const double p = params->p, scale = p < 1 ? 1 / sqrt((LIMIT * LIMIT * p + 1) * (1 - p)) : 0;
    kn_scalar_args *own = kn_entry_record(entry, sizeof *own);
    if (!kn_dtype_is_floating(entry->inputs[0]->dtype))
        return kn_fail(KN_ERR_DTYPE, "not defined for %s tensors; convert with kn_to_dtype first",
                       kn_dtype_name(entry->inputs[0]->dtype));
    if (!params->training || p == 0)
        return kn_entry_return_input(entry);
    own->values[0] = kn_scalar_real(scale);
    own->values[1] = kn_scalar_real(scale * LIMIT * p);
    own->values[2] = kn_scalar_real(scale * LIMIT * (p - 1));
    KN_TRY(new_operand(entry, KN_BOOL, ndim, params->generator));
    return kn_bernoulli_(entry->inputs[1], 1 - p, .generator = params->generator) ? KN_OK : kn_error_status();
}

static kn_status alpha_dropout_enter(kn_entry *entry) { return draw_mask(entry, KN_MAX_DIMS); }

static kn_status feature_alpha_dropout_enter(kn_entry *entry)
{
    char text[KN_DESCRIBE];
    if (entry->inputs[0]->ndim < 2)
        return kn_fail(KN_ERR_SHAPE, "expected [N, C, ...], got %s",
                       kn_tensor_describe(text, sizeof text, entry->inputs[0]));
    return draw_mask(entry, 2);
}

static const kn_op_param dropout_rows[] = {KN_PARAM(kn_alpha_dropout_params, p, .min = 0, .max = 1),
                                           KN_PARAM(kn_alpha_dropout_params, training),
                                           KN_PARAM(kn_alpha_dropout_params, generator)};
#define ALPHA_DROPOUT_OP(op_name, enter_)                                                                              \
    {                                                                                                                  \
        KN_ELEMENTWISE_FIELDS(op_name, false, true, &alpha_dropout_table),                                             \
            .inputs = {"x"}, .dtypes = {KN_DTYPES_FLOATING},                                                           \
            .params = KN_PARAMS(kn_alpha_dropout_params, dropout_rows, KN_ALPHA_DROPOUT_DEFAULTS), .composes = true,   \
            .enter = enter_                                                                                            \
    }
const kn_op kn_alpha_dropout_op = ALPHA_DROPOUT_OP("alpha_dropout", alpha_dropout_enter);
const kn_op kn_feature_alpha_dropout_op = ALPHA_DROPOUT_OP("feature_alpha_dropout", feature_alpha_dropout_enter);
KN_PARAMS_FUNCTIONS(alpha_dropout, ALPHA_DROPOUT)

kn_tensor *kn_feature_alpha_dropout_with(kn_tensor *x, const kn_alpha_dropout_params *params)
{
    return kn_invoke(&kn_feature_alpha_dropout_op, params, x);
}
