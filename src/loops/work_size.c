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
    const int64_t in_cache = 1 << 18;         /* per core: some MiB */
    if (count >= least * limits->compute_units && count <= in_cache * limits->compute_units)
        return (size_t)limits->compute_units;
    const size_t few = kn_work_items(limits, count, least), many = (size_t)(count / most);
    return many > few ? many : few;
}
