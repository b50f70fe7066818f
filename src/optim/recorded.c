/* optim/recorded.c - optimizer steps in graphs: each replay is one more step, with the current learning rate. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "optim/optim.h"

struct kn_optim_recorded {
    kn_optim *optim; /* NULL: freed */
    kn_dtype dtype;
    void *memory; /* the recording's variable: the kernel's scalars */
    int count;
    int indices[KN_OPTIM_SLOTS];
    kn_optim_recorded *next;
};

/* Protects the lists: a graph may be freed by another thread than the optimizer's. */
static kn_mutex lists = KN_MUTEX_INIT;

/* Called by each replay. The parameters of a launch are at the same step, unless state has been loaded since. */
static kn_status count_step(void *user)
{
    const kn_optim_recorded *recorded = user;
    kn_optim *optim = recorded->optim;
    if (optim == NULL)
        return kn_fail(KN_ERR_STATE, "kn_graph_replay: the optimizer that the graph steps has been freed");
    const int64_t step = optim->steps[recorded->indices[0]] + 1;
    for (int i = 0; i < recorded->count; i++)
        if (optim->steps[recorded->indices[i]] + 1 != step)
            return kn_fail(KN_ERR_STATE,
                           "kn_graph_replay: parameters that %s updates together are now at different steps: capture "
                           "the graph again",
                           optim->algorithm->name);
    double scalars[KN_OPTIM_MAX_SCALARS];
    int count = optim->algorithm->scalars(optim->hyper, step, scalars);
    for (int i = 0; i < count; i++) {
        if (recorded->dtype == KN_F64)
            ((double *)recorded->memory)[i] = scalars[i];
        else
            ((float *)recorded->memory)[i] = (float)scalars[i];
    }
    for (int i = 0; i < recorded->count; i++)
        optim->steps[recorded->indices[i]] = step;
    return KN_OK;
}

static void drop(void *user)
{
    kn_optim_recorded *recorded = user;
    kn_lock(&lists);
    if (recorded->optim != NULL) {
        kn_optim_recorded **link = &recorded->optim->recorded;
        while (*link != recorded)
            link = &(*link)->next;
        *link = recorded->next;
    }
    kn_unlock(&lists);
    kn_free(recorded);
}

const void *kn_optim_record(const kn_optim_group *group)
{
    kn_optim *optim = group->optim;
    kn_optim_recorded *recorded = kn_calloc(1, sizeof *recorded);
    void *memory = recorded == NULL ? NULL : kn_capture_variable(group->stream, KN_OPTIM_MAX_SCALARS * sizeof(double));
    if (memory == NULL) {
        kn_free(recorded);
        return NULL;
    }
    *recorded = (kn_optim_recorded){.optim = optim, .dtype = group->dtype, .memory = memory, .count = group->count};
    for (int i = 0; i < group->count; i++)
        recorded->indices[i] = group->given[i].index;
    kn_lock(&lists);
    recorded->next = optim->recorded;
    optim->recorded = recorded;
    kn_unlock(&lists);
    return kn_capture_on_replay(group->stream, count_step, recorded, drop) == KN_OK ? memory : NULL;
}

void kn_optim_forget_recorded(kn_optim *optim)
{
    kn_lock(&lists);
    for (kn_optim_recorded *recorded = optim->recorded; recorded != NULL; recorded = recorded->next)
        recorded->optim = NULL;
    optim->recorded = NULL;
    kn_unlock(&lists);
}
