/* loops/rows_source.h - the OpenCL C of a kernel for rows. */
#ifndef KN_LOOPS_ROWS_SOURCE_H
#define KN_LOOPS_ROWS_SOURCE_H

#include "loops/rows.h"

/* Of the launches that a problem takes. */
typedef enum kn_rows_stage {
    KN_ROWS_WHOLE,    /* the only one */
    KN_ROWS_PARTIAL,  /* the first of two: the outputs are the fields of each chunk's state */
    KN_ROWS_COMBINED, /* the second: the inputs are those fields, and one element is a chunk */
    KN_ROWS_MAP,      /* the only one, of a code with a map or several passes */
    KN_ROWS_SCAN      /* a value for each element, after the first of two or alone */
} kn_rows_stage;

/* How a kernel walks: cl/rows/cpu.clh has the first two, cl/rows/gpu.clh all of them, but maps
 * (cl/rows/map_cpu.clh, map_gpu.clh) and scans (cl/rows/scan.clh). */
typedef enum kn_rows_walk { KN_ALONG_ROWS, KN_DOWN_COLUMNS, KN_DOWN_FEW_ROWS } kn_rows_walk;

/* All that the text depends on beside the code: compared byte by byte. */
typedef struct kn_rows_form {
    uint8_t stage, walk, compute;
    uint8_t width;                    /* GPUs: elements loaded as one, 1 or 4; CPU devices: 16; scans: 1 or 16 */
    uint8_t is_aligned;               /* these are aligned as vectors are */
    uint8_t has_place;                /* the place is wanted */
    uint8_t mapped;                   /* kn_dtype of the map's output; 0: not wanted */
    uint8_t held;                     /* of maps on GPUs: elements that a work-item keeps in registers; 0: none */
    uint8_t outputs[KN_ROWS_OUTPUTS]; /* kn_dtype; 0: not wanted */
    uint8_t inputs[KN_ROWS_INPUTS];
} kn_rows_form;

#define KN_ROWS_PREFIX "rows_"

/* Parameters of the kernel, which is called KN_ROWS_PREFIX and the code's name: the map's output, if it is wanted; the
 * outputs that are wanted, or every field of the state; the inputs, or, of the second stage, every field and the inputs
 * that there are one of for each row; of a scan the inputs and every field; the kn_rows_plan of cl/rows/rows.clh; the
 * numbers. A field is of the type that is computed in, the place, which comes last, int64. */
void kn_rows_write(kn_text *out, const void *code, const void *form);

#endif
