/* loops/rows_plan.h - how work on rows is divided: by the sizes alone where the order of a sum depends on it, so that
 * equal inputs give equal bits on all devices of a kind. */
#pragma once

#include "loops/work_size.h"

/* Splits the middle dimension of [outer, n, inner], n > 0, into `count` chunks of `length` for the first of two
 * launches; one chunk: a single launch is enough. Elements that do not take long are those that are only loaded and
 * added or compared. */
typedef struct kn_chunks {
    int64_t length, count;
} kn_chunks;
kn_chunks kn_split_middle(const kn_limits *limits, int64_t outer, int64_t n, int64_t inner, bool takes_long);

/* Work-items for `tasks` tasks: one work-item each on a CPU device, one work-group of up to 256 (a power of two) on
 * other devices. */
kn_work_size kn_work_for_groups(const kn_limits *limits, int64_t tasks);

/* How many work-items of a work-group of `local`, a power of two, share a run of `n`, so that each has at most `terms`
 * if there are enough. With 16 the reduction tree costs no more than the terms. */
int kn_team_for(int64_t n, int64_t terms, size_t local);

/* How many elements of a row a GPU work-item keeps in registers between the passes of a map with `inputs` inputs, if at
 * most `local` work-items share the row; 0: the row is too long. */
int kn_held_of(int64_t n, int64_t inner, int inputs, size_t local);

/* The number of parts of `rows` rows of n elements, whose totals are merged in order, by a second launch if there are
 * several. A part is a task of a CPU device, elsewhere a work-group, with a team of `lanes` for each row. */
int64_t kn_parts_of_rows(const kn_limits *limits, int64_t rows, int64_t n, int64_t inner, int lanes);

/* The number of parts of `rows` rows, one task each, whose column sums are added by a second launch. */
int64_t kn_parts_of_columns(int64_t rows);

/* Work-groups for `rows` rows with a team of `lanes` each; GPUs only. */
kn_work_size kn_work_for_teams(const kn_limits *limits, int64_t rows, int lanes);
