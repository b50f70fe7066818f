/* support/many.c - see many.h. */
#include "support/many.h"

typedef struct gate {
    kn_module *linear;
} gate;

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const gate *self = kn_module_self(module);
    outputs[0] = kn_mul(kn_forward(self->linear, inputs[0]), inputs[1]);
    if (inputs[2] != NULL)
        outputs[0] = kn_add(outputs[0], inputs[2]);
    outputs[1] = kn_mul(inputs[0], inputs[1]);
    return KN_OK;
}

kn_module *gate_module(int64_t width)
{
    kn_module *module = kn_module_new_many("Gate", forward, .self_size = sizeof(gate), .num_inputs = 3,
                                           .num_optional = 1, .num_outputs = 2);
    gate *self = kn_module_self(module);
    if (self == NULL)
        return NULL;
    self->linear = kn_module_register_module(module, "gate",
                                             kn_nn_linear(.in_features = width, .out_features = width, .bias = false));
    kn_tensor *weight = kn_module_get(module, "gate.weight");
    KN_SCOPE;
    KN_NO_GRAD;
    if (weight != NULL && kn_copy_(weight, kn_zeros(KN_SHAPE(width, width))) == KN_OK) {
        for (int64_t i = 0; i < width; i++)
            kn_copy_(kn_select(kn_select(weight, 0, i), 0, i), kn_full(KN_SCALAR, 2));
        return module;
    }
    kn_module_free(module);
    return NULL;
}
