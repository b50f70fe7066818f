/* loops/rows_plan.c - see rows_plan.h. */
#include "loops/rows_plan.h"

#include "base/integer.h"

static kn_chunks cut(int64_t n, int64_t chunks, int64_t multiple)
{
    const int64_t length = chunks <= 1 ? n : kn_div_up(kn_div_up(n, chunks), multiple) * multiple;
    return (kn_chunks){.length = length, .count = kn_div_up(n, length)};
}

static kn_chunks cut_rows(int64_t outer, int64_t n)
{
    if (n <= 8192 || outer >= 256)
        return cut(n, 1, 1);
    return cut(n, kn_min_i64(kn_div_up(n, 4096), kn_div_up(2048, outer)), 64);
}

/* Enough pieces of at least 16384 elements to keep a large device busy. */
static kn_chunks cut_columns(int64_t outer, int64_t n, int64_t inner)
{
    const int64_t tiles = outer * kn_div_up(inner, 64);

    if (tiles >= 256 || n * inner <= 131072) /* a second launch would cost more than it saves */
        return cut(n, 1, 1);
    return cut(n, kn_min_i64(kn_div_up(n * inner, 16384), kn_div_up(1024, tiles)), 16);
}

/* A CPU's second launch takes as long as one core takes for so many elements in its cache. */
enum { WITHOUT_SECOND_LAUNCH = 1 << 18 };

kn_chunks kn_split_middle(const kn_limits *limits, int64_t outer, int64_t n, int64_t inner, bool takes_long)
{
    if (limits->is_cpu && !takes_long && outer * n * inner <= WITHOUT_SECOND_LAUNCH)
        return cut(n, 1, 1);
    return inner == 1 ? cut_rows(outer, n) : cut_columns(outer, n, inner);
}

kn_work_size kn_work_for_groups(const kn_limits *limits, int64_t tasks)
{
    size_t local = 256;

    if (limits->is_cpu)
        return (kn_work_size){.global = (size_t)kn_min_i64(tasks, 4 * (int64_t)limits->compute_units)};
    while (local > limits->max_work_group_size)
        local /= 2;
    return (kn_work_size){.global = (size_t)kn_min_i64(tasks, 65536) * local, .local = local};
}

int kn_team_for(int64_t n, int64_t terms, size_t local)
{
    int lanes = 1;
    while (lanes < (int)local && terms * lanes < n)
        lanes *= 2;
    return lanes;
}

int kn_held_of(int64_t n, int64_t inner, int inputs, size_t local)
{
    const int most = inputs > 2 ? 8 : 16;
    if (n <= (inner > 1 ? 4 : 32))
        return 4;
    return n <= most * (inner > 1 ? 1 : (int64_t)local) ? most : 0;
}

int64_t kn_parts_of_rows(const kn_limits *limits, int64_t rows, int64_t n, int64_t inner, int lanes)
{
    if (limits->is_cpu)
        return kn_div_up(rows, inner == 1 && n >= 128 ? 16 : 128);
    if (inner == 1 && rows * n <= 32768) /* a second launch would take longer */
        return 1;
    const kn_work_size work = kn_work_for_teams(limits, rows, lanes);
    return (int64_t)(work.global / work.local);
}

int64_t kn_parts_of_columns(int64_t rows)
{
    const int64_t shares = kn_div_up(rows, 64);
    return kn_div_up(rows, shares < 16 ? 16 : kn_min_i64(shares, 256));
}

kn_work_size kn_work_for_teams(const kn_limits *limits, int64_t rows, int lanes)
{
    const int64_t local = (int64_t)kn_work_for_groups(limits, 1).local;
    return kn_work_for_groups(limits, kn_div_up(rows * lanes, local));
}
