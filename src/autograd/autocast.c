/* autograd/autocast.c - see autocast.h. */
#include "autograd/autocast.h"

#include "base/error.h"

static _Thread_local struct {
    kn_dtype dtype;
    int depth; /* of nested regions */
} region;

static void (*on_left)(void);

void kn_autocast_set_left(void (*left)(void)) { on_left = left; }

kn_dtype kn_autocast_dtype(void) { return region.dtype; }

kn_dtype kn_autocast_enter(kn_dtype dtype)
{
    const kn_dtype before = region.dtype;
    region.depth++;
    if (dtype == KN_F16 || dtype == KN_BF16 || dtype == KN_DTYPE_DEFAULT)
        region.dtype = dtype;
    else
        kn_fail_null(KN_ERR_ARGUMENT, "autocast: the dtype must be float16 or bfloat16, not %s", kn_dtype_name(dtype));
    return before;
}

void kn_autocast_leave(kn_dtype before)
{
    region.dtype = before;
    if (region.depth > 0 && --region.depth == 0 && on_left)
        on_left();
}

kn_dtype kn_autocast_pause(void)
{
    const kn_dtype before = region.dtype;
    region.dtype = KN_DTYPE_DEFAULT;
    return before;
}

void kn_autocast_resume(kn_dtype before) { region.dtype = before; }
