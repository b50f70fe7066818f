/* data/loader_loop.c - public batches, and the loop over them (KN_FOR_BATCHES). */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/loader.h"
#include "data/order.h"

/* --- batches ---------------------------------------------------------------------------------- */

kn_batch kn_loader_describe(const kn_loader *loader, kn_tensor **fields, int64_t number)
{
    const kn_dataset *dataset = loader->dataset;
    const kn_loader_part *part = &loader->part; /* of several parts, each has its own random numbers */
    const int64_t of_all = part->parts > 1 ? number * part->parts + part->index : number;
    return (kn_batch){.fields = fields,
                      .num_fields = loader->num_fields,
                      .size = kn_ndim(fields[0]) > 0 ? kn_size(fields[0], 0) : 1,
                      .input = dataset->input >= 0 ? fields[dataset->input] : NULL,
                      .target = dataset->target >= 0 ? fields[dataset->target] : NULL,
                      .names = dataset->names,
                      .random = kn_batch_random(loader->params.seed, loader->epoch, of_all)};
}

kn_yielded_batch *kn_loader_new_yielded(kn_loader *loader)
{
    kn_yielded_batch *given = kn_calloc(1, sizeof *given + (size_t)loader->num_fields * sizeof given->fields[0]);
    if (given)
        given->loader = loader;
    return given;
}

kn_tensor *kn_batch_field(const kn_batch *batch, const char *name)
{
    char there[256];
    if (!batch || !name) {
        kn_fail_argument_null("kn_batch_field", batch ? "name" : "batch");
        return kn_error_make_sticky();
    }
    for (int i = 0; i < batch->num_fields; i++)
        if (strcmp(batch->names[i], name) == 0)
            return batch->fields[i];
    return kn_fail_null(KN_ERR_ARGUMENT, "kn_batch_field: the batch has no field \"%s\"; %s", name,
                        kn_describe_names(there, sizeof there, batch->names, batch->num_fields));
}

/* --- the loop --------------------------------------------------------------------------------- */

/* The next batch, in a new scope; NULL, with everything released, at the end and after an error. */
static const kn_batch *begin_round(kn_yielded_batch *given)
{
    bool more = false;
    given->scope = kn_scope_begin();
    kn_status status = given->scope > 0 ? kn_loader_yield(given->loader, given, &more) : kn_error_status();
    if (status == KN_OK && more)
        return &given->batch;
    given->loader->loop_status = status;
    if (status != KN_OK)
        kn_error_make_sticky();
    kn_batches_end(&given->batch);
    return NULL;
}

const kn_batch *kn_batches_begin(kn_loader *loader, int64_t epoch)
{
    kn_status status = kn_loader_start(loader, epoch);
    kn_yielded_batch *given = status == KN_OK ? kn_loader_new_yielded(loader) : NULL;
    if (loader)
        loader->loop_status = status == KN_OK && !given ? KN_ERR_MEMORY : status;
    if (!given)
        return kn_error_make_sticky();
    given->starts = loader->starts;
    return begin_round(given);
}

const kn_batch *kn_batches_next(const kn_batch *batch)
{
    kn_yielded_batch *given = (kn_yielded_batch *)(uintptr_t)batch;
    if (!given) {
        kn_fail_argument_null("kn_batches_next", "batch");
        return kn_error_make_sticky();
    }
    kn_scope_end(given->scope);
    given->scope = 0;
    if (given->starts == given->loader->starts)
        return begin_round(given);
    given->loader->loop_status = KN_ERR_STATE;
    kn_fail(KN_ERR_STATE, "loader: epoch %lld was started inside a loop over the same loader's batches",
            (long long)given->loader->epoch);
    kn_batches_end(batch);
    return kn_error_make_sticky();
}

void kn_batches_end(const kn_batch *batch)
{
    kn_yielded_batch *given = (kn_yielded_batch *)(uintptr_t)batch;
    if (!given)
        return;
    kn_scope_end(given->scope);
    kn_free(given);
}

kn_status kn_loader_status(const kn_loader *loader)
{
    return loader ? loader->loop_status : kn_fail_argument_null("kn_loader_status", "loader");
}
