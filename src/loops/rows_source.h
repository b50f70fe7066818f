/* loops/rows_source.h - the OpenCL C of a kernel for rows. */
#pragma once

#include "loops/rows.h"

/* The launches of a problem. */
typedef enum kn_rows_stage {
    KN_ROWS_WHOLE,    /* the only one */
    KN_ROWS_PARTIAL,  /* the first of two: the outputs are the fields of each chunk's state */
    KN_ROWS_COMBINED, /* the second: the inputs are those fields, one element per chunk */
    KN_ROWS_MAP,      /* the only one, with a map or two passes */
    KN_ROWS_SCAN      /* one value per element; alone, or the second of two */
} kn_rows_stage;

/* How a kernel walks: cl/rows/cpu.clh has the first two, cl/rows/gpu.clh all; maps are in
 * cl/rows/map_cpu.clh and map_gpu.clh, scans in cl/rows/scan.clh. */
typedef enum kn_rows_walk { KN_ALONG_ROWS, KN_DOWN_COLUMNS, KN_DOWN_FEW_ROWS } kn_rows_walk;

/* Everything that the source depends on besides the code; compared bytewise. */
typedef struct kn_rows_form {
    uint8_t stage, walk, compute;
    uint8_t width;                    /* vector length; GPUs: 1 or 4; CPU devices: 16; scans: 1 or 16 */
    uint8_t is_aligned;               /* the vectors are aligned */
    uint8_t has_place;                /* the place is wanted */
    uint8_t mapped;                   /* kn_dtype of the map's output; 0: not wanted */
    uint8_t bypass;                   /* the map's output is stored past the caches (cl/common/bypass.clh) */
    uint8_t below;                    /* maps along rows on CPU devices: rows are shorter than this; 0: of any length */
    uint8_t length;                   /* scans along rows on CPU devices: that of short rows; 0: any */
    uint8_t held;                     /* maps on GPUs: elements that a work-item keeps in registers; 0: none */
    uint8_t in_parts;                 /* the fields of the total are wanted, for each part of the rows */
    uint8_t outputs[KN_ROWS_OUTPUTS]; /* kn_dtype; 0: not wanted */
    uint8_t totals[KN_ROWS_OUTPUTS];
    uint8_t has_columns;            /* the fields of the columns' code are wanted, for each part of the rows */
    uint8_t inputs[KN_ROWS_INPUTS]; /* 0: missing */
} kn_rows_form;

/* Where an input's elements are. */
typedef enum rows_extent {
    PER_ELEMENT,
    PER_PLACE,
    PER_SEGMENT,
    PER_ROW,
    SINGLE,
    INDEX,
    PICKED,
    PICKED_PLACE,
    FIELD_BEFORE
} rows_extent;

/* Of the input with that letter. */
rows_extent kn_rows_extent_of(const kn_rows_code *code, char letter);

/* Has it an element for each index? */
static inline bool kn_rows_is_loaded(rows_extent extent) { return extent <= PER_SEGMENT; }

#define KN_ROWS_PREFIX "rows_"
/* Values of `below`: shorter rows than the first, without a map, take less time side by side, a lane each. */
enum { KN_ROWS_TINY = 12, KN_ROWS_SHORT = 64 };

/* The kernel is named KN_ROWS_PREFIX plus the code's name. Its parameters: the map's output, if wanted; the wanted
 * outputs, or every field of the state; the same of the total; the inputs, or in the second stage every field and the
 * per-row inputs, or in a scan the inputs and every field; the kn_rows_plan of cl/rows/rows.clh; the numbers; with an
 * index, the ignored one and KN_FAULT. Fields have the compute type; the place comes last and is int64. */
void kn_rows_write(kn_text *out, const void *code, const void *form);
