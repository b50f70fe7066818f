/* rt/memory/pool.c - creating a pool, its limits and statistics. The policy is described in rt/memory/pool.h. */
#include "rt/memory/pool.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "rt/device/device_struct.h"

/* In bytes; 0: no limit, also if the variable is invalid. */
static uint64_t limit_from_environment(void)
{
    const char *wanted = getenv("KOINE_MEMORY_LIMIT");
    char *end;
    if (!wanted || !*wanted)
        return 0;
    errno = 0;
    uint64_t limit = strtoull(wanted, &end, 10);
    if (*end == '\0' && errno == 0 && isdigit((unsigned char)*wanted))
        return limit;
    kn_log_message(KN_LOG_ERROR, "KOINE_MEMORY_LIMIT is `%s`, not a number of bytes: there is no limit", wanted);
    return 0;
}

kn_pool *kn_pool_new(void)
{
    kn_pool *pool = kn_calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    kn_mutex_init(&pool->lock);
    pool->limit = limit_from_environment();
    pool->fraction = 1;
    const char *guard = getenv("KOINE_GUARD");
    pool->guard = guard && strcmp(guard, "0") != 0 && *guard;
    return pool;
}

uint64_t kn_pool_total(const kn_device *device)
{
    return device->pool->limit ? device->pool->limit : device->limits.global_memory;
}

uint64_t kn_pool_allowed(const kn_device *device)
{
    if (device->pool->fraction < 1)
        return (uint64_t)(device->pool->fraction * (double)kn_pool_total(device));
    return device->pool->limit ? device->pool->limit : UINT64_MAX;
}

kn_pool_figures kn_pool_read_figures(kn_device *device)
{
    kn_lock(&device->pool->lock);
    kn_pool_figures figures = device->pool->figures;
    kn_unlock(&device->pool->lock);
    return figures;
}
