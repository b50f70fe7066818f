/* train/update_bn.c - the statistics of batch normalisation after weights were averaged, as torch.optim.swa_utils. */
#include <koine/autograd.h>
#include <koine/averaged_model.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/norm.h"

/* A layer, and whether it averages equally when it is not asked to. */
typedef struct layer {
    kn_module *module;
    bool before;
} layer;

typedef struct layers {
    layer *all;
    int count, capacity;
} layers;

/* Resets the layers below `module` and makes them average equally. */
static kn_status begin(layers *list, kn_module *module)
{
    bool *averages = kn_batch_norm_averages(module);
    if (averages) {
        KN_TRY(KN_GROW(list->all, list->count, list->capacity));
        list->all[list->count++] = (layer){module, *averages};
        *averages = true;
        KN_TRY(kn_batch_norm_reset(module));
    }
    for (int i = 0; i < module->num_children; i++)
        KN_TRY(begin(list, module->children[i].module));
    return KN_OK;
}

static kn_status apply_to_all(kn_module *module, kn_loader *loader)
{
    KN_FOR_BATCHES (batch, loader, 0) {
        if (!batch->input)
            return kn_fail(KN_ERR_ARGUMENT, "update_bn: the loader's batches have no field \"input\"");
        if (!kn_forward(module, batch->input))
            return kn_error_status();
    }
    return kn_loader_status(loader);
}

kn_status kn_update_bn(kn_loader *loader, kn_module *module)
{
    if (!loader || !module)
        return kn_fail_argument_null("update_bn", loader ? "module" : "loader");
    layers list = {0};
    const bool training = kn_module_is_training(module);
    kn_status status = begin(&list, module);
    if (status == KN_OK && list.count > 0) {
        KN_NO_GRAD;
        kn_module_train(module, true);
        status = apply_to_all(module, loader);
        kn_module_train(module, training);
    }
    for (int i = 0; i < list.count; i++)
        *kn_batch_norm_averages(list.all[i].module) = list.all[i].before;
    kn_free(list.all);
    return status;
}
