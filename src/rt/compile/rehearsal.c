/* rt/compile/rehearsal.c - see rt/compile/rehearsal.h. */
#include "rt/compile/rehearsal.h"

#include "rt/compile/compile.h"
#include "rt/compile/request.h"
#include "rt/device/driver_cache.h"
#include "rt/device/lost.h"
#include "rt/program/program.h"

static kn_status rehearse_launch(const kn_rehearsal *rehearsal, kn_stream *stream, const kn_launch_params *params,
                                 const size_t global[3], const size_t local[3])
{
    return rehearsal->takes(kn_request_key(stream->device, params, global, local), rehearsal->user)
               ? kn_compile_launch(stream, params, global, local)
               : KN_OK;
}

void kn_rehearse(kn_rehearsal *rehearsal)
{
    if (rehearsal)
        rehearsal->launch = rehearse_launch;
    atomic_store(&kn_rehearsal_now, rehearsal);
}

/* --- the cache ---------------------------------------------------------------------------------------------------- */

static kn_status check_driver_cache(const kn_device *device)
{
    char *folder = kn_driver_cache_folder();
    kn_status status = KN_OK;
    if (!folder || !kn_driver_cache_is_usable(folder))
        status = kn_fail(KN_ERR_IO,
                         "%s's driver cannot write to '%s', where it keeps compiled kernels; make it writable, or set "
                         "POCL_CACHE_DIR to a folder that is",
                         device->label, folder ? folder : "~/.cache/pocl");
    kn_free(folder);
    return status;
}

kn_status kn_rehearsal_check_cache(kn_device *device)
{
    return device->quirks.caches_programs ? check_driver_cache(device) : kn_program_cache_check();
}
