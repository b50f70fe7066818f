/* train/cells.h - an entry of the log of figures on the device: an array of 8-byte cells, which hold integers, or a
 * value of the entry's dtype at the start of the cell. A new entry is all zeros. */
#pragma once

/* Scalars, and gradient norms, which are followed by the parameters' norms. */
enum {
    KN_CELL_COUNT,
    KN_CELL_BAD, /* the first update with a value that is not finite; 0: none */
    KN_CELL_BAD_IS_NAN,
    KN_CELL_WEIGHT,
    KN_CELL_SIZE, /* size of the following values: 4 or 8 bytes */
    KN_CELL_LAST,
    KN_CELL_SUM,
    KN_CELL_ERROR, /* compensation, to be added to the sum */
    KN_CELL_MIN,
    KN_CELL_MAX,
    KN_SCALAR_CELLS
};
enum { KN_HISTOGRAM_VALUES, KN_HISTOGRAM_OUTSIDE, KN_HISTOGRAM_BINS = 4 }; /* below, above, NaN; the bins */
