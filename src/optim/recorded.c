/* optim/recorded.c - optimizer steps in graphs: each replay is one more step, with the current learning rate. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "optim/optim.h"

struct kn_optim_recorded {
    kn_optim *optim; /* NULL: freed */
    kn_dtype dtype;
    bool has_own_steps; /* the kernel reads the steps from the device */
    void *memory;       /* the recording's variable: the kernel's scalars */
    int count;
    int indices[KN_OPTIM_SLOTS];
    kn_optim_recorded *next;
};

/* Protects the lists: a graph may be freed by another thread than the optimizer's. */
static kn_mutex lists = KN_MUTEX_INIT;

static bool are_alike(const kn_optim_course *a, const kn_optim_course *b)
{
    bool same = a->step == b->step;
    for (int i = 0; i < KN_OPTIM_MAX_CARRIED && same; i++)
        same = a->carried[i] == b->carried[i];
    return same;
}

/* Called by each replay. The parameters of a launch are at the same step, unless state has been loaded since. */
static kn_status count_step(void *user)
{
    const kn_optim_recorded *recorded = user;
    kn_optim *optim = recorded->optim;
    if (optim == NULL)
        return kn_fail(KN_ERR_STATE, "kn_graph_replay: the optimizer that the graph steps has been freed");
    kn_optim_course course = optim->courses[recorded->indices[0]];
    for (int i = 0; i < recorded->count; i++)
        if (!are_alike(&optim->courses[recorded->indices[i]], &course))
            return kn_fail(KN_ERR_STATE,
                           "kn_graph_replay: parameters that %s updates together are now at different steps: capture "
                           "the graph again",
                           optim->algorithm->name);
    double scalars[KN_OPTIM_MAX_SCALARS];
    const kn_optim_group *group = &optim->groups[optim->group_of[recorded->indices[0]]];
    const int64_t step = ++course.step;
    if (step == 1 && optim->algorithm->start)
        optim->algorithm->start(group->hyper, course.carried);
    course.step = recorded->has_own_steps ? 0 : step;
    int count = optim->algorithm->scalars(group->hyper, &course, scalars);
    course.step = step;
    for (int i = 0; i < count; i++) {
        if (recorded->dtype == KN_F64)
            ((double *)recorded->memory)[i] = scalars[i];
        else
            ((float *)recorded->memory)[i] = (float)scalars[i];
    }
    for (int i = 0; i < recorded->count; i++)
        optim->courses[recorded->indices[i]] = course;
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

const void *kn_optim_record(const kn_optim_batch *batch)
{
    kn_optim *optim = batch->optim;
    kn_optim_recorded *recorded = kn_calloc(1, sizeof *recorded);
    void *memory = recorded == NULL ? NULL : kn_capture_variable(batch->stream, KN_OPTIM_MAX_SCALARS * sizeof(double));
    if (memory == NULL) {
        kn_free(recorded);
        return NULL;
    }
    *recorded = (kn_optim_recorded){.optim = optim,
                                    .dtype = kn_compute_type(batch->dtype),
                                    .has_own_steps = batch->slots[0].step && batch->algorithm->counts_on_device,
                                    .memory = memory,
                                    .count = batch->count};
    for (int i = 0; i < batch->count; i++)
        recorded->indices[i] = batch->given[i].index;
    kn_lock(&lists);
    recorded->next = optim->recorded;
    optim->recorded = recorded;
    kn_unlock(&lists);
    return kn_capture_on_replay(batch->stream, count_step, recorded, drop) == KN_OK ? memory : NULL;
}

void kn_optim_forget_recorded(kn_optim *optim)
{
    kn_lock(&lists);
    for (kn_optim_recorded *recorded = optim->recorded; recorded != NULL; recorded = recorded->next)
        recorded->optim = NULL;
    optim->recorded = NULL;
    kn_unlock(&lists);
}
