/* autograd/pass_end.h - functions called when the backward pass that runs on this thread ends. */
#pragma once

#include <koine/status.h>

/* `status`: of the pass so far. The status returned becomes the pass's if that is KN_OK. */
typedef kn_status (*kn_pass_end)(kn_status status, void *user);

/* Called by hooks: once, at the end of the innermost pass. KN_ERR_STATE outside a pass. */
kn_status kn_pass_at_end(kn_pass_end function, void *user);

/* Around a pass (engine.c). */
typedef struct kn_pass_ends {
    struct kn_pass_end_entry {
        kn_pass_end function;
        void *user;
    } * items;
    int count, capacity;
    struct kn_pass_ends *outer;
} kn_pass_ends;
void kn_pass_ends_enter(kn_pass_ends *ends);
kn_status kn_pass_ends_leave(kn_pass_ends *ends, kn_status status);
