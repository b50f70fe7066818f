/* dist/zero_files.c - the state of divided optimizers in files: gathered on one rank, or a file for each rank. */
#include <koine/distributed.h>
#include <stdio.h>

#include "dist/group/bytes.h"
#include "dist/zero.h"
#include "io/checkpoint.h"

/* --- gathering ---------------------------------------------------------------------------------------------------- */

/* What is sent before a tensor's values. */
typedef struct header {
    int64_t dtype, ndim, shape[KN_MAX_DIMS];
    char name[64];
} header;

static kn_status send_tensor(kn_group *group, const char *name, kn_tensor *tensor, int to)
{
    header h = {.dtype = tensor->dtype, .ndim = tensor->ndim};
    memcpy(h.shape, tensor->shape, sizeof h.shape);
    snprintf(h.name, sizeof h.name, "%s", name);
    KN_TRY(kn_group_pass_bytes(group, &h, sizeof h, to, true));
    return kn_group_send(group, tensor, to);
}

static kn_status receive_tensor(kn_group *group, int from, kn_tensor_list *list)
{
    header h;
    kn_tensor *tensor = NULL;
    KN_TRY(kn_group_pass_bytes(group, &h, sizeof h, from, false));
    KN_TRY(kn_tensor_new(&tensor, (kn_dtype)h.dtype, (int)h.ndim, h.shape, kn_device_host()));
    kn_status status = kn_group_receive(group, tensor, from);
    if (status == KN_OK)
        status = kn_tensor_list_append(list, h.name, tensor);
    kn_release(tensor);
    return status;
}

static kn_status send_list(kn_group *group, kn_tensor_list *list, int to)
{
    int64_t count = list->count;
    KN_TRY(kn_group_pass_bytes(group, &count, sizeof count, to, true));
    for (int i = 0; i < list->count; i++)
        KN_TRY(send_tensor(group, list->names[i], list->tensors[i], to));
    return KN_OK;
}

/* Appends copies: the optimizer's state goes on changing. */
static kn_status append_copies(kn_tensor_list *whole, const kn_tensor_list *list)
{
    for (int i = 0; i < list->count; i++) {
        kn_tensor *copy = NULL;
        KN_TRY(kn_tensor_new(&copy, list->tensors[i]->dtype, list->tensors[i]->ndim, list->tensors[i]->shape,
                             kn_device_host()));
        kn_status status = kn_tensor_copy(copy, list->tensors[i]);
        if (status == KN_OK)
            status = kn_tensor_list_append(whole, list->names[i], copy);
        kn_release(copy);
        KN_TRY(status);
    }
    return KN_OK;
}

static kn_status receive_lists(kn_group *group, const kn_tensor_list *own, kn_tensor_list *whole)
{
    for (int r = 0; r < kn_group_size(group); r++) {
        int64_t count = 0;
        if (r == kn_group_rank(group)) {
            KN_TRY(append_copies(whole, own));
            continue;
        }
        KN_TRY(kn_group_pass_bytes(group, &count, sizeof count, r, false));
        for (int64_t i = 0; i < count; i++)
            KN_TRY(receive_tensor(group, r, whole));
    }
    return KN_OK;
}

kn_status kn_optim_zero_consolidate(kn_optim *optim, int to)
{
    if (!optim)
        return kn_fail_argument_null("optim_zero_consolidate", "optim");
    if (!optim->shard)
        return KN_OK;
    const kn_zero *zero = kn_zero_of(optim);
    if (to < 0 || to >= zero->shard.size)
        return kn_fail(KN_ERR_ARGUMENT, "optim_zero_consolidate: to is %d; the group has ranks 0 to %d", to,
                       zero->shard.size - 1);
    KN_NO_GRAD;
    kn_optim_forget_whole(optim);
    kn_tensor_list own;
    KN_TRY(kn_optim_state_list(optim, &own));
    kn_tensor_list *whole = &optim->shard->whole;
    const bool is_here = zero->shard.rank == to;
    kn_status status = is_here ? receive_lists(zero->group, &own, whole) : send_list(zero->group, &own, to);
    kn_tensor_list_free(&own);
    optim->shard->has_whole = is_here && status == KN_OK;
    if (status != KN_OK)
        kn_tensor_list_free(whole);
    return status;
}

/* --- a file for each rank ----------------------------------------------------------------------------------------- */

static kn_status check_share(const kn_tensor_file *file, const char *path, int count, bool *seen)
{
    int rank = -1, size = 0;
    const char *share = kn_tensor_file_metadata(file, "share");
    if (share && sscanf(share, KN_SHARE_FORMAT, &rank, &size) != 2)
        rank = -1;
    if (!share && count == 1) /* of a group of one, or gathered */
        rank = 0, size = 1;
    if (rank < 0 || rank >= size)
        return kn_fail(KN_ERR_FORMAT, "%s holds no part of an optimizer's state", path);
    if (size != count)
        return kn_fail(KN_ERR_FORMAT, "%s is one of %d parts, but %d files were given", path, size, count);
    if (seen[rank])
        return kn_fail(KN_ERR_FORMAT, "%s holds the part of rank %d, as a file before it does", path, rank);
    seen[rank] = true;
    return KN_OK;
}

typedef struct parts {
    kn_tensor_list list; /* of all files */
    kn_tensor_file *first;
    bool *seen; /* by rank */
} parts;

static kn_status read_part(const char *path, int count, parts *p)
{
    kn_tensor_file *file = kn_load_safetensors(path);
    if (!file)
        return kn_error_status();
    kn_tensor_list list = {0};
    kn_status status = check_share(file, path, count, p->seen);
    if (status == KN_OK)
        status = kn_checkpoint_get_list(file, "", &list);
    for (int i = 0; i < list.count && status == KN_OK; i++)
        status = kn_tensor_list_append(&p->list, list.names[i], list.tensors[i]);
    kn_tensor_list_free(&list);
    if (p->first || status != KN_OK)
        kn_tensor_file_free(file);
    else
        p->first = file;
    return status;
}

kn_status kn_optim_zero_load(kn_optim *optim, const char *const *paths, int count)
{
    if (!optim || !paths)
        return kn_fail_argument_null("optim_zero_load", optim ? "paths" : "optim");
    if (count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "optim_zero_load: %d files", count);
    parts p = {.seen = kn_calloc((size_t)count, sizeof *p.seen)};
    kn_status status = p.seen ? KN_OK : KN_ERR_MEMORY;
    for (int i = 0; i < count && status == KN_OK; i++)
        status = read_part(paths[i], count, &p);
    if (status == KN_OK)
        status = kn_checkpoint_get_optim_list(p.first, "", &p.list, optim, paths[0]);
    kn_tensor_list_free(&p.list);
    kn_tensor_file_free(p.first);
    kn_free(p.seen);
    return status;
}
