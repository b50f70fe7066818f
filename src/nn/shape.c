/* nn/shape.c - Flatten, Unflatten, Identity. */
#include <koine/shape.h>

#include "base/error.h"
#include "nn/operator_layer.h"
#include "ops/dispatch/operators.h"
#include "tensor/tensor.h"

kn_nn_flatten_params kn_nn_flatten_params_init(void) { return (kn_nn_flatten_params){KN_NN_FLATTEN_DEFAULTS}; }

kn_module *kn_nn_flatten_with(const kn_nn_flatten_params *params)
{
    const kn_nn_flatten_params p = params ? *params : kn_nn_flatten_params_init();
    const kn_flatten_args args = {p.start_dim, p.end_dim};
    return kn_layer_of_operator("Flatten", &kn_flatten_op, &args, "start_dim end_dim");
}

/* --- Unflatten ---------------------------------------------------------------------------------------------------- */

typedef struct unflatten {
    int dim, ndim;
    int64_t sizes[KN_MAX_DIMS];
} unflatten;

static kn_tensor *unflatten_forward(kn_module *module, kn_tensor *x)
{
    const unflatten *self = module->self;
    return kn_unflatten(x, self->dim, self->ndim, self->sizes);
}

static void describe_unflatten(kn_module *module, kn_text *text)
{
    const unflatten *self = module->self;
    kn_text_format(text, "dim=%d, unflattened_size=(", self->dim);
    for (int d = 0; d < self->ndim; d++)
        kn_text_format(text, "%s%lld", d > 0 ? ", " : "", (long long)self->sizes[d]);
    kn_text_append(text, self->ndim == 1 ? ",)" : ")");
}

kn_module *kn_nn_unflatten(int dim, int ndim, const int64_t *unflattened_size)
{
    unflatten self = {.dim = dim, .ndim = ndim};

    if (ndim < 1 || ndim > KN_MAX_DIMS || !unflattened_size)
        return kn_fail_null(KN_ERR_ARGUMENT, "Unflatten: unflattened_size must have 1 to %d sizes, not %d", KN_MAX_DIMS,
                            unflattened_size ? ndim : 0);
    for (int d = 0, open = 0; d < ndim; d++) {
        self.sizes[d] = unflattened_size[d];
        open += self.sizes[d] == -1;
        if (self.sizes[d] < -1 || open > 1)
            return kn_fail_null(KN_ERR_ARGUMENT,
                                "Unflatten: unflattened_size must have sizes of at least 0, and at most one of -1 that "
                                "follows from the others, but size %d is %lld",
                                d, (long long)self.sizes[d]);
    }
    return kn_layer_new("Unflatten", unflatten_forward, describe_unflatten, &self, sizeof self);
}

/* --- Identity ----------------------------------------------------------------------------------------------------- */

static kn_tensor *identity_forward(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_scope_adopt(kn_retain(x));
}

kn_module *kn_nn_identity(void) { return kn_layer_new("Identity", identity_forward, NULL, NULL, 0); }
