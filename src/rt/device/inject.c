/* rt/device/inject.c - see rt/device/inject.h. */
#include "rt/device/inject.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/system.h"
#include "base/threads.h"

atomic_bool kn_injecting;

static struct {
    kn_mutex lock;
    kn_cl_call kind;
    int left; /* calls of the kind until the one that fails; 0: it has failed */
    cl_int error;
    bool for_good;
    int calls_after;
} plan = {.lock = KN_MUTEX_INIT};

void kn_inject(kn_cl_call kind, int nth, cl_int error, bool for_good)
{
    kn_lock(&plan.lock);
    plan.kind = kind;
    plan.left = nth;
    plan.error = error;
    plan.for_good = for_good;
    plan.calls_after = 0;
    kn_unlock(&plan.lock);
    atomic_store(&kn_injecting, true);
}

void kn_inject_stop(void) { atomic_store(&kn_injecting, false); }

int kn_inject_calls_after(void)
{
    kn_lock(&plan.lock);
    int calls = plan.calls_after;
    kn_unlock(&plan.lock);
    return calls;
}

bool kn_inject_hits(kn_cl_call kind)
{
    bool hits;
    kn_lock(&plan.lock);
    if (plan.left == 0) {
        plan.calls_after++;
        hits = plan.for_good;
    } else {
        hits = kind == plan.kind && --plan.left == 0;
    }
    kn_unlock(&plan.lock);
    return hits;
}

cl_int kn_injected_error(void)
{
    kn_lock(&plan.lock);
    cl_int error = plan.error;
    kn_unlock(&plan.lock);
    return error;
}

void kn_inject_from_environment(void)
{
    static const char *const names[KN_CL_KINDS] = {"launch", "read",  "write", "copy", "wait",
                                                   "mark",   "alloc", "build", "probe"};
    const char *wanted = kn_trusted_environment("KOINE_FAIL_CL");
    char name[16];
    int nth, error, used = 0;
    if (!wanted || !*wanted)
        return;
    if (sscanf(wanted, "%15[a-z]:%d:%d%n", name, &nth, &error, &used) == 3 && !wanted[used] && nth > 0 && error < 0)
        for (int kind = 0; kind < KN_CL_KINDS; kind++)
            if (strcmp(name, names[kind]) == 0) {
                kn_inject((kn_cl_call)kind, nth, error, true);
                return;
            }
    kn_log_message(KN_LOG_ERROR, "KOINE_FAIL_CL is `%s`, not KIND:N:ERROR like launch:100:-36; it is ignored", wanted);
}
