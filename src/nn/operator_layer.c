/* nn/operator_layer.c - see operator_layer.h. */
#include "nn/operator_layer.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/params_text.h"

enum { MOST_BUFFERS = 2 };

/* The self of such a layer. */
typedef struct operator_layer {
    const kn_op *op;
    const char *shown;
    int num_inputs;                   /* of the operator; those after the module's are its buffers */
    kn_tensor *buffers[MOST_BUFFERS]; /* borrowed; NULL: left out */
    _Alignas(max_align_t) unsigned char params[];
} operator_layer;

/* NULL for an operator without: what it records may be more than nothing. */
static const void *params_of(const operator_layer *self)
{
    return kn_op_params_of(self->op)->size > 0 ? self->params : NULL;
}

static kn_tensor *forward(kn_module *module, kn_tensor *x)
{
    const operator_layer *self = module->self;
    return kn_invoke(self->op, params_of(self), x);
}

static kn_status forward_many(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const operator_layer *self = module->self;
    const int given = module->kind.signature.inputs;
    kn_tensor *all[KN_OP_MAX_INPUTS];
    for (int i = 0; i < self->num_inputs; i++)
        all[i] = i < given ? inputs[i] : self->buffers[i - given];
    outputs[0] = kn_op_invoke(self->op, all, self->num_inputs, params_of(self));
    return outputs[0] ? KN_OK : kn_error_status();
}

static void describe(kn_module *module, kn_text *text)
{
    const operator_layer *self = module->self;
    for (const char *at = self->shown; *at;) {
        const bool is_named = *at != '=';
        const char *name = at + !is_named;
        const size_t length = strcspn(name, " ");
        const kn_op_param *param = kn_op_find_param(self->op, name, length);
        kn_text_append(text, at > self->shown ? ", " : "");
        if (is_named)
            kn_text_format(text, "%.*s=", (int)length, name);
        if (param)
            kn_param_append(text, param, self->params + param->offset, true);
        at = name + length + strspn(name + length, " ");
    }
}

static kn_signature signature_of(const kn_op *op)
{
    const int inputs = kn_op_describe(op).num_inputs;
    int optional = 0;
    while (optional < inputs && kn_op_input_at(op, inputs - 1 - optional).is_optional)
        optional++;
    return (kn_signature){.inputs = inputs, .optional = optional, .outputs = 1};
}

/* The tensors become buffers of the module, whose scope keeps nothing. */
static kn_module *with_buffers(kn_module *module, kn_tensor *const *tensors, int count)
{
    operator_layer *self = module ? module->self : NULL;
    const int first = self ? self->num_inputs - count : 0;
    for (int i = 0; self && i < count; i++) {
        if (!tensors[i])
            continue;
        self->buffers[i] = kn_module_register_buffer(module, kn_op_input_at(self->op, first + i).name, tensors[i]);
        if (!self->buffers[i])
            return kn_layer_failed(module);
    }
    return module;
}

kn_module *kn_layer_with_buffers(const char *type_name, const kn_op *op, const void *params, const char *shown,
                                 kn_tensor *const *tensors, int count)
{
    const kn_op_params *of = kn_op_params_of(op);
    kn_signature signature = signature_of(op);
    const bool is_many = signature.inputs > 1;
    const size_t size = sizeof(operator_layer) + of->size;
    operator_layer *self = kn_malloc(size);
    if (!self)
        return kn_error_make_sticky();
    *self = (operator_layer){.op = op, .shown = shown, .num_inputs = signature.inputs};
    if (of->size > 0)
        memcpy(self->params, params ? params : of->defaults, of->size);
    if (kn_op_check_params(op, params_of(self)) != KN_OK) {
        kn_free(self);
        kn_error_prefix("%s", type_name);
        return kn_error_make_sticky();
    }
    signature.inputs -= count;
    signature.optional -= count;
    const kn_module_kind kind = {.forward = is_many ? NULL : forward,
                                 .forward_many = is_many ? forward_many : NULL,
                                 .signature = signature,
                                 .describe = shown ? describe : NULL,
                                 .is_layer = true};
    kn_module *module = kn_layer_new_kind(type_name, &kind, self, size);
    kn_free(self);
    return with_buffers(module, tensors, count);
}

kn_module *kn_layer_of_operator(const char *type_name, const kn_op *op, const void *params, const char *shown)
{
    return kn_layer_with_buffers(type_name, op, params, shown, NULL, 0);
}
