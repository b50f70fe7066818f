/* autograd/pass_end.c - functions called when a backward pass ends. */
#include "autograd/pass_end.h"

#include "base/error.h"
#include "base/memory.h"

static _Thread_local kn_pass_ends *innermost;

kn_status kn_pass_at_end(kn_pass_end function, void *user)
{
    kn_pass_ends *ends = innermost;
    if (!ends)
        return kn_fail(KN_ERR_STATE, "no backward pass is running on this thread");
    KN_TRY(KN_GROW(ends->items, ends->count, ends->capacity));
    ends->items[ends->count++] = (struct kn_pass_end_entry){function, user};
    return KN_OK;
}

void kn_pass_ends_enter(kn_pass_ends *ends)
{
    *ends = (kn_pass_ends){.outer = innermost};
    innermost = ends;
}

kn_status kn_pass_ends_leave(kn_pass_ends *ends, kn_status status)
{
    innermost = ends->outer;
    for (int i = 0; i < ends->count; i++) {
        const kn_status ended = ends->items[i].function(status, ends->items[i].user);
        status = status == KN_OK ? ended : status;
    }
    kn_free(ends->items);
    return status;
}
