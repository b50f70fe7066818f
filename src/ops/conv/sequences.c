/* ops/conv/sequences.c - convolution of sequences with time first: a composition. */
#include <koine/conv.h>
#include <koine/operators.h>
#include <koine/shape.h>

#include "ops/dispatch/invoke.h"

static kn_status check(const kn_entry *entry)
{
    const kn_tensor *x = entry->inputs[0], *weight = entry->inputs[1];
    char of[KN_DESCRIBE], has[KN_DESCRIBE];

    if (x->ndim != 3)
        return kn_fail(KN_ERR_SHAPE, "x must be [time, batch, channels], not %s", kn_tensor_describe(of, sizeof of, x));
    if (weight->ndim != 3 || weight->shape[1] != x->shape[2])
        return kn_fail(KN_ERR_SHAPE,
                       "weight must be [kernel size, %lld, out channels] for the %lld channels of x, %s, not %s",
                       (long long)x->shape[2], (long long)x->shape[2], kn_tensor_describe(of, sizeof of, x),
                       kn_tensor_describe(has, sizeof has, weight));
    return KN_OK;
}

static kn_status conv_tbc_enter(kn_entry *entry)
{
    const kn_conv_tbc_args *args = entry->params;
    KN_TRY(check(entry));
    kn_tensor *x = kn_permute(entry->inputs[0], (const int[]){1, 2, 0});
    kn_tensor *weight = kn_permute(entry->inputs[1], (const int[]){2, 1, 0});
    kn_tensor *y = kn_conv1d(x, weight, entry->inputs[2], .padding = args->pad);
    return kn_status_of(entry->result = kn_permute(y, (const int[]){2, 0, 1}));
}

static const kn_op_param rows[] = {KN_PARAM(kn_conv_tbc_args, pad, .min = 0, .max = 1e9)};
const kn_op kn_conv_tbc_op = {.name = "conv_tbc",
                              .inputs = {"x", "weight", "?bias"},
                              .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_FLOATING, KN_DTYPES_FLOATING},
                              .params = KN_PARAMS(kn_conv_tbc_args, rows, .pad = 0),
                              .composes = true,
                              .enter = conv_tbc_enter};

kn_tensor *kn_conv_tbc(kn_tensor *x, kn_tensor *weight, kn_tensor *bias, int64_t pad)
{
    return kn_invoke(&kn_conv_tbc_op, &(kn_conv_tbc_args){pad}, x, weight, bias);
}
