/* nn/transformer.c - torch.nn.TransformerEncoder, TransformerDecoder and Transformer: layers one after the other. */
#include <koine/init.h>
#include <koine/reduce.h>
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/transformer.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

typedef struct stack {
    kn_module *layers, *norm; /* a ModuleList; norm NULL: none */
    bool is_decoder;
} stack;

/* --- encoders and decoders ---------------------------------------------------------------------------------------- */

/* Each layer's temporaries are released before the next one runs. */
static kn_tensor *apply_layer(kn_module *module, const kn_transformer_call *call, bool is_decoder)
{
    kn_tensor *y = NULL;
    if (call->is_causal) {
        const int depth = kn_scope_begin_internal();
        return depth ? kn_scope_return(depth, kn_transformer_layer_apply(module, call)) : kn_error_make_sticky();
    }
    kn_tensor *const of_encoder[] = {call->x, call->mask, call->padding};
    kn_tensor *const of_decoder[] = {call->x,           call->memory,  call->mask,
                                     call->memory_mask, call->padding, call->memory_padding};
    const kn_status status =
        is_decoder ? kn_forward_many(module, of_decoder, 6, &y, 1) : kn_forward_many(module, of_encoder, 3, &y, 1);
    return status == KN_OK ? y : kn_error_make_sticky();
}

static kn_tensor *apply_stack(kn_module *module, kn_transformer_call call)
{
    const stack *self = module->self;
    for (int i = 0; i < kn_module_child_count(self->layers) && call.x; i++)
        call.x = apply_layer(kn_module_child(self->layers, i), &call, self->is_decoder);
    return self->norm ? kn_forward(self->norm, call.x) : call.x;
}

static kn_status encoder_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    outputs[0] = apply_stack(module, kn_transformer_encoder_call(inputs));
    return outputs[0] ? KN_OK : kn_error_status();
}

static kn_status decoder_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    outputs[0] = apply_stack(module, kn_transformer_decoder_call(inputs));
    return outputs[0] ? KN_OK : kn_error_status();
}

static kn_status check_layers(const char *name, kn_module *const *layers, int count, bool is_decoder)
{
    if (count < 0 || (count > 0 && !layers))
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d layers, or the array of layers is NULL", name, count);
    for (int i = 0; i < count; i++) {
        if (!layers[i])
            return kn_fail_argument_null(name, "layer");
        if (!kn_is_transformer_layer(layers[i], is_decoder))
            return kn_fail(KN_ERR_ARGUMENT, "%s: layer %d must be a %sLayer, not %s", name, i, name,
                           layers[i]->type_name);
    }
    return KN_OK;
}

static kn_module *stack_of(kn_module *const *layers, int count, kn_module *norm, bool is_decoder)
{
    const char *name = is_decoder ? "TransformerDecoder" : "TransformerEncoder";
    const kn_module_kind kind = {.forward_many = is_decoder ? decoder_forward : encoder_forward,
                                 .signature =
                                     is_decoder ? kn_transformer_decoder_signature : kn_transformer_encoder_signature,
                                 .is_layer = true};
    const stack made = {.is_decoder = is_decoder};
    if (check_layers(name, layers, count, is_decoder) != KN_OK) {
        kn_module_discard(layers, 0, count);
        kn_module_discard(&norm, 0, 1);
        return kn_error_make_sticky();
    }
    kn_module *list = kn_nn_module_list_of(layers, count);
    kn_module *module = list ? kn_layer_new_kind(name, &kind, &made, sizeof made) : NULL;
    if (!module) {
        kn_module_discard(&list, 0, 1);
        kn_module_discard(&norm, 0, 1);
        return kn_error_make_sticky();
    }
    stack *self = module->self;
    self->layers = kn_module_register_module(module, "layers", list);
    self->norm = norm && self->layers ? kn_module_register_module(module, "norm", norm) : NULL;
    if (self->layers && (!norm || self->norm))
        return module;
    if (!self->layers) /* otherwise the registration of `norm` failed, which freed it */
        kn_module_discard(&norm, 0, 1);
    return kn_layer_failed(module);
}

kn_module *kn_nn_transformer_encoder_of(kn_module *const *layers, int count, kn_module *norm)
{
    return stack_of(layers, count, norm, false);
}

kn_module *kn_nn_transformer_decoder_of(kn_module *const *layers, int count, kn_module *norm)
{
    return stack_of(layers, count, norm, true);
}

static kn_module *stack_with(int count, kn_module *norm, const kn_nn_transformer_layer_params *params, bool is_decoder)
{
    kn_module **layers = count > 0 ? kn_calloc((size_t)count, sizeof *layers) : NULL;
    bool failed = count < 0 || (count > 0 && !layers);
    if (count < 0)
        kn_fail(KN_ERR_ARGUMENT, "Transformer%s: num_layers must be at least 0, not %d",
                is_decoder ? "Decoder" : "Encoder", count);
    for (int i = 0; i < count && !failed; i++) {
        layers[i] =
            is_decoder ? kn_nn_transformer_decoder_layer_with(params) : kn_nn_transformer_encoder_layer_with(params);
        failed = !layers[i];
    }
    if (failed) {
        kn_module_discard(layers, 0, count);
        kn_module_discard(&norm, 0, 1);
        kn_error_make_sticky();
    }
    kn_module *module = failed ? NULL : stack_of(layers, count, norm, is_decoder);
    kn_free(layers);
    return module;
}

kn_module *kn_nn_transformer_encoder_with(int num_layers, kn_module *norm, const kn_nn_transformer_layer_params *params)
{
    return stack_with(num_layers, norm, params, false);
}

kn_module *kn_nn_transformer_decoder_with(int num_layers, kn_module *norm, const kn_nn_transformer_layer_params *params)
{
    return stack_with(num_layers, norm, params, true);
}

/* --- causal ------------------------------------------------------------------------------------------------------- */

static kn_tensor *apply_causal(const char *name, kn_module *module, kn_transformer_call call, bool is_decoder)
{
    call.is_causal = true;
    if (!module || !call.x || (is_decoder && !call.memory))
        return kn_fail_argument_null(name, module ? "input" : "module"), kn_error_make_sticky();
    if (kn_is_transformer_layer(module, is_decoder))
        return apply_layer(module, &call, is_decoder);
    if (module->kind.forward_many != (is_decoder ? decoder_forward : encoder_forward))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: the module must be a Transformer%s or a layer of one, not %s", name,
                            is_decoder ? "Decoder" : "Encoder", module->type_name);
    const int depth = kn_scope_begin_internal();
    return depth ? kn_scope_return(depth, apply_stack(module, call)) : kn_error_make_sticky();
}

kn_tensor *kn_transformer_encode_causal(kn_module *encoder, kn_tensor *src, kn_tensor *src_key_padding_mask)
{
    return apply_causal("transformer_encode_causal", encoder,
                        (kn_transformer_call){.x = src, .padding = src_key_padding_mask}, false);
}

kn_tensor *kn_transformer_decode_causal(kn_module *decoder, kn_tensor *tgt, kn_tensor *memory,
                                        kn_tensor *tgt_key_padding_mask, kn_tensor *memory_key_padding_mask)
{
    return apply_causal(
        "transformer_decode_causal", decoder,
        (kn_transformer_call){
            .x = tgt, .memory = memory, .padding = tgt_key_padding_mask, .memory_padding = memory_key_padding_mask},
        true);
}

kn_tensor *kn_nn_square_subsequent_mask_with(int64_t size, const kn_tensor_options *options)
{
    const kn_tensor_options ones_options = {.dtype = KN_F32, .device = options ? options->device : NULL};
    const int64_t shape[] = {size, size};
    const int depth = kn_scope_begin_internal();
    if (depth == 0)
        return kn_error_make_sticky();
    kn_tensor *ones = kn_ones_with(2, shape, &ones_options);
    kn_tensor *hidden = kn_full_with(0, NULL, kn_scalar_real(-(double)INFINITY), options);
    kn_tensor *zero = kn_zeros_with(0, NULL, options);
    return kn_scope_return(depth, kn_where(kn_gt(kn_cumsum(ones, 1), kn_cumsum(ones, 0)), hidden, zero));
}

/* --- the Transformer ---------------------------------------------------------------------------------------------- */

enum { SRC, TGT, SRC_MASK, TGT_MASK, MEMORY_MASK, SRC_PADDING, TGT_PADDING, MEMORY_PADDING, INPUTS };

typedef struct transformer {
    kn_module *encoder, *decoder;
} transformer;

static kn_status forward(kn_module *module, kn_tensor *const *in, kn_tensor **outputs)
{
    const transformer *self = module->self;
    kn_tensor *memory = NULL;
    KN_TRY(kn_forward_many(self->encoder, (kn_tensor *const[]){in[SRC], in[SRC_MASK], in[SRC_PADDING]}, 3, &memory, 1));
    return kn_forward_many(
        self->decoder,
        (kn_tensor *const[]){in[TGT], memory, in[TGT_MASK], in[MEMORY_MASK], in[TGT_PADDING], in[MEMORY_PADDING]}, 6,
        outputs, 1);
}

/* xavier_uniform_ for all matrices. */
static kn_status reset(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    (void)name;
    (void)user;
    if (is_buffer || tensor->ndim < 2)
        return KN_OK;
    return kn_init_xavier_uniform_with_(tensor, 1, NULL) ? KN_OK : kn_error_status();
}

static bool add_stack(kn_module *module, const kn_nn_transformer_params *p, bool is_decoder)
{
    transformer *self = module->self;
    const kn_nn_transformer_layer_params layer = {.d_model = p->d_model,
                                                  .nhead = p->nhead,
                                                  .dim_feedforward = p->dim_feedforward,
                                                  .dropout = p->dropout,
                                                  .activation = p->activation,
                                                  .layer_norm_eps = p->layer_norm_eps,
                                                  .batch_first = p->batch_first,
                                                  .norm_first = p->norm_first,
                                                  .bias = p->bias};
    kn_module *norm = kn_nn_layer_norm(KN_SHAPE(p->d_model), .eps = p->layer_norm_eps, .bias = p->bias);
    kn_module *made =
        norm ? stack_with(is_decoder ? p->num_decoder_layers : p->num_encoder_layers, norm, &layer, is_decoder) : NULL;
    kn_module **slot = is_decoder ? &self->decoder : &self->encoder;
    *slot = made ? kn_module_register_module(module, is_decoder ? "decoder" : "encoder", made) : NULL;
    return *slot != NULL;
}

kn_nn_transformer_params kn_nn_transformer_params_init(void)
{
    return (kn_nn_transformer_params){KN_NN_TRANSFORMER_DEFAULTS};
}

kn_module *kn_nn_transformer_with(const kn_nn_transformer_params *params)
{
    static const kn_module_kind kind = {.forward_many = forward,
                                        .signature = {.inputs = INPUTS, .optional = INPUTS - 2, .outputs = 1},
                                        .is_layer = true};
    const transformer self = {.encoder = NULL};
    params = params ? params : &(kn_nn_transformer_params){KN_NN_TRANSFORMER_DEFAULTS};
    if (params->num_encoder_layers < 0 || params->num_decoder_layers < 0)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "Transformer: num_encoder_layers (%d) and num_decoder_layers (%d) must be at least 0",
                            params->num_encoder_layers, params->num_decoder_layers);
    kn_module *module = kn_layer_new_kind("Transformer", &kind, &self, sizeof self);
    if (!module)
        return NULL;
    if (!add_stack(module, params, false) || !add_stack(module, params, true))
        return kn_layer_failed(module);
    return kn_module_each(module, reset, NULL) == KN_OK ? module : kn_layer_failed(module);
}
