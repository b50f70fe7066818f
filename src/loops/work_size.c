/* loops/work_size.c - see work_size.h. */
#include "loops/work_size.h"

kn_work_size kn_work_for(const kn_limits *limits, int64_t count)
{
    const size_t items = kn_work_items(limits, count, 4096);
    size_t local = 256;

    if (limits->is_cpu)
        return (kn_work_size){.global = items, .local = 0};
    while (local > limits->max_work_group_size)
        local /= 2;
    return (kn_work_size){.global = (items + local - 1) / local * local, .local = local};
}

size_t kn_streaming_items(const kn_limits *limits, int64_t count)
{
    const int64_t least = 4096, most = 16384; /* elements per work-item */
    const size_t few = kn_work_items(limits, count, least), many = (size_t)(count / most);
    return many > few ? many : few;
}

/* Elements per core: while fewer are computed, the threads start one after another, and small parts balance that. */
enum { LONG_AS_A_START = 1 << 16 };

size_t kn_streaming_items_in_place(const kn_limits *limits, int64_t count, size_t bytes)
{
    const int64_t per_core = count / limits->compute_units;
    const bool stays = (uint64_t)per_core * bytes <= limits->core_cache / 4 * 3;
    return stays && per_core >= LONG_AS_A_START ? (size_t)limits->compute_units : kn_streaming_items(limits, count);
}
