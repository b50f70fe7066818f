/* nn/padding.c - layers that pad. */
#include <koine/nn/padding.h>

#include "base/error.h"
#include "nn/module.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/params_text.h"

extern const kn_op kn_pad_op;

typedef struct padding {
    kn_pad_args args;
    bool names_value; /* is the value printed? */
} padding;

static kn_tensor *forward(kn_module *module, kn_tensor *x)
{
    return kn_invoke(&kn_pad_op, &((const padding *)module->self)->args, x);
}

static void describe(kn_module *module, kn_text *text)
{
    const padding *self = module->self;
    kn_text_append(text, self->names_value ? "padding=(" : "(");
    for (int i = 0; i < self->args.pad.count; i++)
        kn_text_format(text, "%s%lld", i > 0 ? ", " : "", (long long)self->args.pad.values[i]);
    kn_text_append(text, ")");
    if (self->names_value) {
        kn_text_append(text, ", value=");
        kn_param_append(text, kn_op_param_at(&kn_pad_op, 2), &self->args.value, true);
    }
}

/* `pads`: one number for all sides, or two for each of `dims` dimensions. */
static kn_module *make(const char *name, int dims, int count, const int64_t *pads, padding self)
{
    if (!pads || (count != 1 && count != 2 * dims))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: padding has %d numbers; it needs 1 or %d", name, pads ? count : 0,
                            2 * dims);
    self.args.pad.count = 2 * dims;
    for (int i = 0; i < 2 * dims; i++)
        self.args.pad.values[i] = pads[count == 1 ? 0 : i];
    return kn_layer_new(name, forward, describe, &self, sizeof self);
}

#define PADDINGS(n)                                                                                                    \
    kn_module *kn_nn_zero_pad##n##d(int count, const int64_t *pads)                                                    \
    {                                                                                                                  \
        return make("ZeroPad" #n "d", n, count, pads, (padding){.args.mode = KN_PAD_CONSTANT});                        \
    }                                                                                                                  \
    kn_module *kn_nn_constant_pad##n##d(int count, const int64_t *pads, double value)                                  \
    {                                                                                                                  \
        return make("ConstantPad" #n "d", n, count, pads,                                                              \
                    (padding){.args.value = kn_scalar_real(value), .names_value = true});                              \
    }                                                                                                                  \
    kn_module *kn_nn_reflection_pad##n##d(int count, const int64_t *pads)                                              \
    {                                                                                                                  \
        return make("ReflectionPad" #n "d", n, count, pads, (padding){.args.mode = KN_PAD_REFLECT});                   \
    }                                                                                                                  \
    kn_module *kn_nn_replication_pad##n##d(int count, const int64_t *pads)                                             \
    {                                                                                                                  \
        return make("ReplicationPad" #n "d", n, count, pads, (padding){.args.mode = KN_PAD_REPLICATE});                \
    }                                                                                                                  \
    kn_module *kn_nn_circular_pad##n##d(int count, const int64_t *pads)                                                \
    {                                                                                                                  \
        return make("CircularPad" #n "d", n, count, pads, (padding){.args.mode = KN_PAD_CIRCULAR});                    \
    }

PADDINGS(1)
PADDINGS(2)
PADDINGS(3)
