/* ops/conv/cpu/winograd_divide.c - see ops/conv/cpu/winograd_divide.h. What is compared is the cost to the core that
 * has most to do, in multiply-adds of vectors for each value of a transformed tile. */
#include "ops/conv/cpu/winograd_divide.h"

#include "base/integer.h"

/* To transform a channel of a tile of x; a vector of channels of one of y; and those weights of a channel of x. */
static const double OF_X = 0.25, OF_Y = 6, OF_WEIGHTS = 3.5;

/* To multiply, with the broadcasts and loads that are shared within a register tile. */
static double product(int64_t tiles, int64_t vectors) { return 1 + 1.0 / (double)vectors + 1.0 / (double)tiles; }

/* Of equal pieces, those of the core that has most. */
static double most_pieces(const kn_winograd_work *work, int64_t pieces)
{
    return (double)kn_div_up(work->groups * pieces, work->cores);
}

/* --- many tiles --------------------------------------------------------------------------------------------------- */

static double cost_of_many(const kn_winograd_work *work, kn_winograd_division by)
{
    static const double reading_more_often = 1.1; /* the weights, for each smaller block */
    const double inner = (double)work->inner,
                 outer = (double)(kn_div_up(kn_div_up(work->outer, by.vectors), by.parts) * by.vectors),
                 each = product(work->register_tiles, by.vectors) *
                        (by.tiles == work->register_tiles ? reading_more_often : 1);
    return most_pieces(work, kn_div_up(work->tiles, by.tiles) * by.parts) * (double)by.tiles *
           (OF_X * inner + each * inner * outer + OF_Y * outer);
}

kn_winograd_division kn_winograd_divide_many(const kn_winograd_work *work, int64_t vectors)
{
    kn_winograd_division best = {2 * work->register_tiles, 1, vectors};
    const int64_t parts = kn_min_i64(kn_div_up(work->outer, vectors), work->cores);
    for (int64_t i = 0; i < 2 * parts; i++) {
        const kn_winograd_division by = {(i / parts + 1) * work->register_tiles, i % parts + 1, vectors};
        if (cost_of_many(work, by) < cost_of_many(work, best))
            best = by;
    }
    return best;
}

/* --- few tiles ---------------------------------------------------------------------------------------------------- */

static double cost_of_few(const kn_winograd_work *work, kn_winograd_division by)
{
    return most_pieces(work, by.parts * kn_div_up(work->tiles, by.tiles)) * (double)by.vectors *
           (OF_WEIGHTS + (double)by.tiles * product(work->register_tiles, by.vectors));
}

static kn_winograd_division in_blocks(const kn_winograd_work *work, int64_t vectors, int64_t blocks)
{
    return (kn_winograd_division){kn_round_up_i64(kn_div_up(work->tiles, blocks), work->register_tiles),
                                  kn_div_up(work->outer, vectors), vectors};
}

static kn_winograd_division divide_few(const kn_winograd_work *work, int64_t vectors, int64_t most)
{
    const int64_t least = kn_div_up(work->tiles, most),
                  blocks = kn_min_i64(kn_div_up(work->tiles, work->register_tiles), least + work->cores);
    kn_winograd_division best = in_blocks(work, vectors, least);
    for (int64_t count = least + 1; count <= blocks; count++) {
        const kn_winograd_division by = in_blocks(work, vectors, count);
        if (cost_of_few(work, by) < cost_of_few(work, best))
            best = by;
    }
    return best;
}

kn_winograd_division kn_winograd_divide_few(const kn_winograd_work *work, int64_t vectors, int64_t most)
{
    static const double pays = 0.8; /* kernels of another register tile are compiled, too */
    const kn_winograd_division usual = divide_few(work, vectors, most);
    if (vectors <= 2)
        return usual;
    const kn_winograd_division narrow = divide_few(work, 2, most);
    return cost_of_few(work, narrow) < pays * cost_of_few(work, usual) ? narrow : usual;
}
