/* base/directions.h - sizes that are given once for all directions or for each: {depth, height, width}, as the
 * convolutions and poolings of one to three dimensions take them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Which of the three directions is number `i` of `dims`: the last ones are there. */
static inline int kn_direction_of(int dims, int i) { return 3 - dims + i; }

static inline const char *kn_direction_name(int dims, int direction)
{
    static const char *const names[3] = {"depth", "height", "width"};
    return dims == 1 ? "length" : names[direction];
}

/* sizes[3] from `each`, which lists the directions that are there, unless all of it is 0; then from `all`. Directions
 * that are not there get `absent`. */
static inline void kn_directions(int64_t sizes[3], int dims, int64_t all, const int64_t *each, int64_t absent)
{
    bool given = false;
    for (int i = 0; i < dims; i++)
        given = given || each[i] != 0;
    for (int d = 0; d < 3; d++)
        sizes[d] = absent;
    for (int i = 0; i < dims; i++)
        sizes[kn_direction_of(dims, i)] = given ? each[i] : all;
}
