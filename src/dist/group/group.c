/* dist/group/group.c - opening and freeing groups, and their properties. */
#include <stdlib.h>
#include <string.h>

#include "dist/group/call.h"
#include "dist/group/module.h"

/* --- the back end ------------------------------------------------------------------------------------------------- */

/* Has a launcher started this process together with others? Variables that Open MPI's, PMIx, MPICH's and Slurm's PMI
 * set for each process. One that is said to be alone needs no MPI, which may not even be there; of several launchers,
 * one inside another, any may have started more. Where none gives a number MPI tells it. */
static bool is_launched(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD"};
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    bool is_started = false;
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        is_started = is_started || getenv(ranks[i]);
    int most = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *size = getenv(sizes[i]);
        if (size && atoi(size) > most)
            most = atoi(size);
    }
    return is_started && most != 1;
}

static const char *chosen_backend(const kn_group_params *params)
{
    return params->backend ? params->backend : is_launched() ? "mpi" : "local";
}

static kn_status check_params(const kn_group_params *params)
{
    const char *backend = params->backend;
    if (backend && strcmp(backend, "mpi") != 0 && strcmp(backend, "local") != 0)
        return kn_fail(KN_ERR_ARGUMENT, "group_open: backend is \"%s\"; it may be \"mpi\", \"local\" or NULL", backend);
    if (!(params->timeout > 0))
        return kn_fail(KN_ERR_ARGUMENT, "group_open: timeout is %g; it must be above 0 seconds", params->timeout);
    if (!(params->lost_after > 0))
        return kn_fail(KN_ERR_ARGUMENT, "group_open: lost_after is %g; it must be above 0 seconds", params->lost_after);
    return KN_OK;
}

static kn_status open_transport(const kn_group_params *params, kn_transport **transport)
{
    const char *backend = chosen_backend(params);
    return strcmp(backend, "local") == 0 ? kn_threads_transports_new("local", 1, params->timeout, transport)
                                         : kn_module_transport_open(backend, params, transport);
}

bool kn_group_backend_is_available(const char *name, const char **reason)
{
    if (reason)
        *reason = "";
    if (name && (strcmp(name, "local") == 0 || strcmp(name, "threads") == 0))
        return true;
    return kn_module_is_available(name ? name : "(null)", reason);
}

/* --- opening and freeing ------------------------------------------------------------------------------------------ */

kn_group_params kn_group_params_init(void) { return (kn_group_params){KN_GROUP_DEFAULTS}; }
kn_collective_params kn_collective_params_init(void) { return (kn_collective_params){KN_COLLECTIVE_DEFAULTS}; }
kn_message_params kn_message_params_init(void) { return (kn_message_params){KN_MESSAGE_DEFAULTS}; }

/* Takes the transport, also on failure. */
static kn_group *group_on(kn_transport *transport, const kn_group_params *params)
{
    kn_group *group = kn_calloc(1, sizeof *group);
    if (!group) {
        transport->class->free(transport);
        return NULL;
    }
    group->transport = transport;
    group->params = *params;
    kn_mutex_init(&group->lock);
    kn_condition_init(&group->changed);
    return group;
}

kn_group *kn_group_open_with(const kn_group_params *params)
{
    const kn_group_params defaults = kn_group_params_init();
    params = params ? params : &defaults;
    kn_transport *transport = NULL;
    if (check_params(params) != KN_OK || open_transport(params, &transport) != KN_OK)
        return NULL;
    return group_on(transport, params);
}

#define MOST_THREADS 1024

kn_status kn_group_open_threads(int size, const kn_group_params *params, kn_group **groups)
{
    const kn_group_params defaults = kn_group_params_init();
    params = params ? params : &defaults;
    if (!groups)
        return kn_fail_argument_null("group_open_threads", "groups");
    if (size < 1 || size > MOST_THREADS)
        return kn_fail(KN_ERR_ARGUMENT, "group_open_threads: size is %d; it may be 1 to %d", size, MOST_THREADS);
    KN_TRY(check_params(params));
    kn_transport *transports[MOST_THREADS];
    KN_TRY(kn_threads_transports_new("threads", size, params->timeout, transports));
    kn_status status = KN_OK;
    for (int i = 0; i < size; i++) {
        groups[i] = group_on(transports[i], params);
        if (!groups[i])
            status = KN_ERR_MEMORY;
    }
    for (int i = 0; i < size && status != KN_OK; i++) {
        kn_group_free(groups[i]);
        groups[i] = NULL;
    }
    return status;
}

static const kn_call_kind split_kind = {.name = "group_split", .run = kn_run_split};

kn_status kn_group_split(kn_group *group, int color, int key, kn_group **part)
{
    if (!group || !part)
        return kn_fail_argument_null("group_split", group ? "part" : "group");
    *part = NULL;
    kn_transport *transport = NULL;
    kn_work *work = kn_work_new(&split_kind);
    if (!work)
        return KN_ERR_MEMORY;
    work->color = color;
    work->key = key;
    work->part = &transport;
    KN_TRY(kn_work_start(group, work, NULL));
    return !transport ? KN_OK : (*part = group_on(transport, &group->params)) ? KN_OK : KN_ERR_MEMORY;
}

void kn_group_free(kn_group *group)
{
    if (!group || !kn_group_end_thread(group))
        return; /* a call that does not return uses it */
    for (size_t i = 0; i < sizeof group->pieces / sizeof group->pieces[0]; i++)
        kn_group_release(group, group->pieces[i]);
    group->transport->class->free(group->transport);
    for (int i = 0; i < KN_MAX_DEVICES; i++)
        if (group->streams[i] && kn_stream_synchronize(group->streams[i]) == KN_OK)
            kn_stream_free(group->streams[i]);
    pthread_cond_destroy(&group->changed);
    kn_mutex_destroy(&group->lock);
    kn_free(group->failure);
    kn_free(group);
}

/* --- properties --------------------------------------------------------------------------------------------------- */

int kn_group_rank(const kn_group *group) { return group ? group->transport->rank : -1; }
int kn_group_size(const kn_group *group) { return group ? group->transport->size : 0; }
int kn_group_local_rank(const kn_group *group) { return group ? group->transport->local_rank : -1; }
int kn_group_local_size(const kn_group *group) { return group ? group->transport->local_size : 0; }
const char *kn_group_backend(const kn_group *group) { return group ? group->transport->name : NULL; }

const char *kn_group_host(const kn_group *group, int rank)
{
    return group && rank >= 0 && rank < group->transport->size ? group->transport->hosts[rank] : NULL;
}
