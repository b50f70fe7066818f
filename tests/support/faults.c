/* support/faults.c - running work under faults. */
#include "support/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/memory.h"

#define MAX_ALLOCATIONS 100000

/* Have fewer than n allocations been made since kn_fail_alloc_after(n)? Then one of the next n fails. */
static bool still_armed(long n)
{
    for (long i = 0; i < n; i++) {
        void *block = kn_malloc(1);
        if (block == NULL)
            return true;
        kn_free(block);
    }
    return false;
}

static void check_agreement(kn_status status, const char *fault)
{
    const kn_status told = kn_error_status();
    const char *message = kn_error_message();
    if (told != status || (status != KN_OK && !*message))
        fail_msg("%s: it returned %s, and the thread's error is %s, \"%s\"", fault, kn_status_name(status),
                 kn_status_name(told), message);
}

kn_status fault_run(fault_work work, void *user, const char *fault)
{
    kn_error_clear();
    kn_status status;
    {
        KN_SCOPE;
        status = work(user);
    }
    check_agreement(status, fault);
    kn_error_clear();
    return status;
}

void fault_none(fault_work work, void *user, const char *when)
{
    kn_error_clear();
    kn_status status;
    {
        KN_SCOPE;
        status = work(user);
    }
    if (status != KN_OK)
        fail_msg("%s: without a fault: %s, \"%s\"", when, kn_status_name(status), kn_error_message());
    check_agreement(status, when);
}

/* Was the work done before the n-th allocation? */
static bool fail_one(fault_work work, void *user, long n, int *failures)
{
    char fault[64];
    snprintf(fault, sizeof fault, "allocation %ld", n);
    kn_error_clear();
    kn_status status;
    bool over;
    {
        KN_SCOPE;
        kn_fail_alloc_after(n, 0);
        status = work(user);
        kn_error_state error;
        kn_error_save(&error);
        over = still_armed(n);
        kn_error_restore(&error);
        kn_fail_alloc_after(0, 0);
    }
    check_agreement(status, fault);
    if (status != KN_OK && status != KN_ERR_MEMORY)
        fail_msg("%s: %s, \"%s\"", fault, kn_status_name(status), kn_error_message());
    kn_error_clear();
    *failures += status != KN_OK;
    return over;
}

void fault_each_allocation(fault_work work, void *user, long dense, long step, int failures)
{
    int seen = 0;
    long n = 1;
    fault_none(work, user, "before");
    while (n < MAX_ALLOCATIONS && !fail_one(work, user, n, &seen))
        n += n < dense ? 1 : step;
    if (n >= MAX_ALLOCATIONS)
        fail_msg("more than %d allocations", MAX_ALLOCATIONS);
    if (seen < failures)
        fail_msg("%d of %ld allocations failed, not %d", seen, n, failures);
    fault_none(work, user, "afterwards");
}
