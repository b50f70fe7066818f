/* support/fail_cl.c - the layer of support/fail_cl.h. */
#include "support/fail_cl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cl_calls.h"

/* --- which call fails --------------------------------------------------------------------------------------------- */

static atomic_long counts[CL_CALL_COUNT];
static struct {
    atomic_int name, error, for_good, failures;
    atomic_long left; /* calls of the name until the one that fails */
} plan = {.name = -1};

/* Counts a call; returns the error to fail with, or CL_SUCCESS. */
static cl_int called(int name)
{
    atomic_fetch_add(&counts[name], 1);
    if (atomic_load(&plan.name) != name)
        return CL_SUCCESS;
    const long before = atomic_fetch_sub(&plan.left, 1);
    if (before != 1 && !(before < 1 && atomic_load(&plan.for_good)))
        return CL_SUCCESS;
    atomic_fetch_add(&plan.failures, 1);
    return atomic_load(&plan.error);
}

static void set_plan(int name, long nth, int error)
{
    atomic_store(&plan.name, -1);
    for (int i = 0; i < CL_CALL_COUNT; i++)
        atomic_store(&counts[i], 0);
    atomic_store(&plan.failures, 0);
    atomic_store(&plan.error, error);
    atomic_store(&plan.left, nth);
    atomic_store(&plan.name, nth > 0 ? name : -1);
}

static bool has_failed(void) { return atomic_load(&plan.failures) > 0; }
static long count_of(int name) { return atomic_load(&counts[name]); }
static const char *name_of(int name) { return name >= 0 && name < CL_CALL_COUNT ? cl_call_names[name] : NULL; }

EXPORT const fail_cl fail_cl_functions = {set_plan, has_failed, count_of, name_of};

static void read_environment(void)
{
    const char *wanted = getenv("FAIL_CL");
    char name[64], on[8] = "";
    long nth;
    int error;
    if (!wanted || sscanf(wanted, "%63[^:]:%ld:%d:%7s", name, &nth, &error, on) < 3)
        return;
    for (int i = 0; i < CL_CALL_COUNT; i++)
        if (strcmp(cl_call_names[i], name) == 0)
            set_plan(i, nth, error);
    atomic_store(&plan.for_good, strcmp(on, "on") == 0);
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("FAIL_CL_COUNTS");
    FILE *file = path && *path ? fopen(path, "w") : NULL;
    for (int i = 0; i < CL_CALL_COUNT && file; i++)
        fprintf(file, "%s %ld\n", cl_call_names[i], atomic_load(&counts[i]));
    if (file)
        fclose(file);
}

/* --- the layer ---------------------------------------------------------------------------------------------------- */

static void install(void)
{
    wrap_calls();
    read_environment();
}

LAYER("fail_cl", install)
