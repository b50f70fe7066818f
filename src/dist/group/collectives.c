/* dist/group/collectives.c - the collectives and messages of koine/group.h: checks of what this rank gives, then a call
 * on the group's thread. */
#include "autograd/view.h"
#include "dist/distributed.h"
#include "dist/group/call.h"

/* --- checks ------------------------------------------------------------------------------------------------------- */

static kn_status check_rank(const char *function, const char *name, const kn_group *group, int rank)
{
    const int size = kn_group_size(group);
    return rank >= 0 && rank < size
               ? KN_OK
               : kn_fail(KN_ERR_ARGUMENT, "%s: %s is %d; the group has ranks 0 to %d", function, name, rank, size - 1);
}

/* A tensor that the call writes. */
static kn_status check_written(const char *function, kn_tensor *tensor)
{
    if (kn_tensor_check_no_overlap(tensor) != KN_OK) {
        kn_error_prefix("%s", function);
        return kn_error_status();
    }
    if (kn_grad_enabled() && kn_change_wants_record(tensor))
        return kn_fail(KN_ERR_STATE,
                       "%s is not recorded, and the tensor that it writes requires gradients: do it inside KN_NO_GRAD",
                       function);
    kn_tensor_bump_version(tensor);
    return KN_OK;
}

/* A list of one tensor per rank: all of the dtype of `model`, on its device and, with `same_shape`, in its shape. */
static kn_status check_list(const char *function, const char *name, const kn_group *group, kn_tensor *const *list,
                            const kn_tensor *model, bool same_shape, bool written)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    for (int r = 0; r < kn_group_size(group); r++) {
        if (!list[r])
            return kn_fail(KN_ERR_ARGUMENT, "%s: %s[%d] is NULL", function, name, r);
        const bool alike = list[r]->dtype == model->dtype && (!same_shape || kn_same_shape(list[r], model));
        if (!alike || kn_device_of(list[r]) != kn_device_of(model))
            return kn_fail(!alike && list[r]->dtype == model->dtype ? KN_ERR_SHAPE
                           : alike                                  ? KN_ERR_DEVICE
                                                                    : KN_ERR_DTYPE,
                           "%s: %s[%d] is %s, but should be like %s", function, name, r,
                           kn_tensor_describe(a, sizeof a, list[r]), kn_tensor_describe(b, sizeof b, model));
        if (written)
            KN_TRY(check_written(function, list[r]));
    }
    return KN_OK;
}

/* --- starting a call ---------------------------------------------------------------------------------------------- */

typedef struct collective {
    const kn_call_kind *kind;
    kn_tensor *tensor;
    kn_tensor *const *inputs, *const *outputs;
    int root;
    const char *root_list; /* the name of a list that only the root gives; NULL: there is none */
    bool writes;           /* the tensor */
} collective;

/* What the others are like; NULL: the call has no tensor. */
static const kn_tensor *first_tensor(const collective *c)
{
    return c->tensor ? c->tensor : c->inputs ? c->inputs[0] : NULL;
}

/* A list that only the root gives. */
static kn_status check_root_list(const kn_group *group, const collective *c)
{
    const bool is_given = c->inputs || c->outputs;
    if (kn_group_rank(group) == c->root)
        return is_given ? KN_OK : kn_fail_argument_null(c->kind->name, c->root_list);
    return !is_given ? KN_OK
                     : kn_fail(KN_ERR_ARGUMENT, "%s: %s must be NULL on rank %d; only the root, rank %d, gives it",
                               c->kind->name, c->root_list, kn_group_rank(group), c->root);
}

static kn_status check(const kn_group *group, const collective *c, const kn_collective_params *params)
{
    const char *name = c->kind->name;
    if (c->kind->root)
        KN_TRY(check_rank(name, "root", group, c->root));
    if (c->root_list)
        KN_TRY(check_root_list(group, c));
    const kn_tensor *first = first_tensor(c);
    const bool same_shape = c->tensor != NULL;
    if (!first && c->inputs)
        return kn_fail(KN_ERR_ARGUMENT, "%s: inputs[0] is NULL", name);
    if (c->kind->reduces && first)
        KN_TRY(kn_check_reduce_op(name, params->op, first->dtype));
    if (c->inputs)
        KN_TRY(check_list(name, "inputs", group, c->inputs, first, same_shape, false));
    if (c->outputs)
        KN_TRY(check_list(name, "outputs", group, c->outputs, first, same_shape, true));
    return c->writes ? check_written(name, c->tensor) : KN_OK;
}

static kn_status start(kn_group *group, const collective *c, const kn_collective_params *params)
{
    const kn_collective_params defaults = kn_collective_params_init();
    params = params ? params : &defaults;
    KN_TRY(check(group, c, params));
    kn_work *work = kn_work_new(c->kind);
    if (!work)
        return KN_ERR_MEMORY;
    work->op = params->op;
    work->root = c->root;
    work->tensor = kn_retain(c->tensor);
    const kn_tensor *first = first_tensor(c);
    work->device = first ? kn_device_of(first) : NULL;
    if ((c->inputs && kn_work_keep(&work->inputs, c->inputs, kn_group_size(group)) != KN_OK) ||
        (c->outputs && kn_work_keep(&work->outputs, c->outputs, kn_group_size(group)) != KN_OK)) {
        kn_work_free(work);
        return KN_ERR_MEMORY;
    }
    return kn_work_start(group, work, params->work);
}

/* --- collectives -------------------------------------------------------------------------------------------------- */

#define CHECK_NOT_NULL(function, argument)                                                                             \
    if (!(argument))                                                                                                   \
    return kn_fail_argument_null(function, #argument)

kn_status kn_group_all_reduce_with(kn_group *group, kn_tensor *tensor, const kn_collective_params *params)
{
    static const kn_call_kind kind = {
        .name = "all_reduce", .run = kn_run_all_reduce, .may_stay = true, .reduces = true, .rounds = 2};
    CHECK_NOT_NULL("all_reduce", group);
    CHECK_NOT_NULL("all_reduce", tensor);
    return start(group, &(collective){.kind = &kind, .tensor = tensor, .writes = true}, params);
}

kn_status kn_group_reduce_with(kn_group *group, kn_tensor *tensor, int root, const kn_collective_params *params)
{
    static const kn_call_kind kind = {
        .name = "reduce", .run = kn_run_reduce, .may_stay = true, .reduces = true, .root = " to rank "};
    CHECK_NOT_NULL("reduce", group);
    CHECK_NOT_NULL("reduce", tensor);
    const bool writes = kn_group_rank(group) == root;
    return start(group, &(collective){.kind = &kind, .tensor = tensor, .root = root, .writes = writes}, params);
}

kn_status kn_group_broadcast_with(kn_group *group, kn_tensor *tensor, int root, const kn_collective_params *params)
{
    static const kn_call_kind kind = {
        .name = "broadcast", .run = kn_run_broadcast, .may_stay = true, .root = " from rank "};
    CHECK_NOT_NULL("broadcast", group);
    CHECK_NOT_NULL("broadcast", tensor);
    const bool writes = kn_group_rank(group) != root;
    return start(group, &(collective){.kind = &kind, .tensor = tensor, .root = root, .writes = writes}, params);
}

kn_status kn_group_all_gather_with(kn_group *group, kn_tensor *const *outputs, kn_tensor *tensor,
                                   const kn_collective_params *params)
{
    static const kn_call_kind kind = {.name = "all_gather", .run = kn_run_all_gather, .may_stay = true, .rounds = 1};
    CHECK_NOT_NULL("all_gather", group);
    CHECK_NOT_NULL("all_gather", outputs);
    CHECK_NOT_NULL("all_gather", tensor);
    return start(group, &(collective){.kind = &kind, .tensor = tensor, .outputs = outputs}, params);
}

kn_status kn_group_all_gather_whole(kn_group *group, kn_tensor *blocks, kn_work **work)
{
    static const kn_call_kind kind = {
        .name = "all_gather", .run = kn_run_all_gather_whole, .may_stay = true, .rounds = 1, .has_all_blocks = true};
    const kn_collective_params params = {.work = work};
    return start(group, &(collective){.kind = &kind, .tensor = blocks, .writes = true}, &params);
}

kn_status kn_group_gather_with(kn_group *group, kn_tensor *const *outputs, kn_tensor *tensor, int root,
                               const kn_collective_params *params)
{
    static const kn_call_kind kind = {.name = "gather", .run = kn_run_gather, .root = " to rank ", .rounds = 1};
    CHECK_NOT_NULL("gather", group);
    CHECK_NOT_NULL("gather", tensor);
    const collective c = {.kind = &kind, .tensor = tensor, .outputs = outputs, .root = root, .root_list = "outputs"};
    return start(group, &c, params);
}

kn_status kn_group_scatter_with(kn_group *group, kn_tensor *tensor, kn_tensor *const *inputs, int root,
                                const kn_collective_params *params)
{
    static const kn_call_kind kind = {.name = "scatter", .run = kn_run_scatter, .root = " from rank ", .rounds = 1};
    CHECK_NOT_NULL("scatter", group);
    CHECK_NOT_NULL("scatter", tensor);
    const collective c = {
        .kind = &kind, .tensor = tensor, .inputs = inputs, .root = root, .root_list = "inputs", .writes = true};
    return start(group, &c, params);
}

kn_status kn_group_reduce_scatter_with(kn_group *group, kn_tensor *tensor, kn_tensor *const *inputs,
                                       const kn_collective_params *params)
{
    static const kn_call_kind kind = {
        .name = "reduce_scatter", .run = kn_run_reduce_scatter, .reduces = true, .rounds = 1};
    CHECK_NOT_NULL("reduce_scatter", group);
    CHECK_NOT_NULL("reduce_scatter", tensor);
    CHECK_NOT_NULL("reduce_scatter", inputs);
    return start(group, &(collective){.kind = &kind, .tensor = tensor, .inputs = inputs, .writes = true}, params);
}

kn_status kn_group_all_to_all_with(kn_group *group, kn_tensor *const *outputs, kn_tensor *const *inputs,
                                   const kn_collective_params *params)
{
    static const kn_call_kind kind = {.name = "all_to_all", .run = kn_run_all_to_all, .rounds = 1};
    CHECK_NOT_NULL("all_to_all", group);
    CHECK_NOT_NULL("all_to_all", outputs);
    CHECK_NOT_NULL("all_to_all", inputs);
    return start(group, &(collective){.kind = &kind, .inputs = inputs, .outputs = outputs}, params);
}

kn_status kn_group_barrier_with(kn_group *group, const kn_collective_params *params)
{
    static const kn_call_kind kind = {.name = "barrier", .run = kn_run_barrier, .may_stay = true};
    CHECK_NOT_NULL("barrier", group);
    return start(group, &(collective){.kind = &kind}, params);
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

#define HIGHEST_TAG 32767 /* what every MPI allows */

static kn_status start_message(kn_group *group, const kn_call_kind *kind, kn_tensor *tensor, int other,
                               const kn_message_params *params)
{
    const kn_message_params defaults = kn_message_params_init();
    params = params ? params : &defaults;
    if (params->tag < 0 || params->tag > HIGHEST_TAG)
        return kn_fail(KN_ERR_ARGUMENT, "%s: tag is %d; it may be 0 to %d", kind->name, params->tag, HIGHEST_TAG);
    if (other == kn_group_rank(group))
        return kn_fail(KN_ERR_ARGUMENT, "%s: rank %d is this rank itself", kind->name, other);
    kn_work *work = kn_work_new(kind);
    if (!work)
        return KN_ERR_MEMORY;
    work->root = other;
    work->tag = params->tag;
    work->sender = params->sender;
    work->tensor = kn_retain(tensor);
    work->device = kn_device_of(tensor);
    return kn_work_start(group, work, params->work);
}

kn_status kn_group_send_with(kn_group *group, kn_tensor *tensor, int to, const kn_message_params *params)
{
    static const kn_call_kind kind = {.name = "send", .run = kn_run_message, .pairs = true, .sends = true};
    CHECK_NOT_NULL("send", group);
    CHECK_NOT_NULL("send", tensor);
    KN_TRY(check_rank("send", "to", group, to));
    return start_message(group, &kind, tensor, to, params);
}

kn_status kn_group_receive_with(kn_group *group, kn_tensor *tensor, int from, const kn_message_params *params)
{
    static const kn_call_kind kind = {.name = "receive", .run = kn_run_message, .pairs = true};
    CHECK_NOT_NULL("receive", group);
    CHECK_NOT_NULL("receive", tensor);
    if (from != KN_ANY_RANK)
        KN_TRY(check_rank("receive", "from", group, from));
    KN_TRY(check_written("receive", tensor));
    return start_message(group, &kind, tensor, from, params);
}
