/* loops/rows_writer.h - shared by the writers of kernels for rows: rows_source.c lists inputs and outputs and assembles
 * the kernel, rows_functions.c writes a code's texts as functions of one width, rows_vectors.c has them call the
 * library's functions of vectors, rows_results.c stores results, rows_frame.c writes the kernel's parameters and the
 * row's constants. */
#pragma once

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "loops/rows_source.h"

enum { MAX_INPUTS = KN_ROWS_STATE + KN_ROWS_INPUTS, MAX_OUTPUTS = KN_ROWS_OUTPUTS + KN_ROWS_STATE + 1, MAX_PASSES = 3 };

/* A kernel input. */
typedef struct rows_input {
    char letter; /* fields have capital letters */
    kn_dtype dtype;
    rows_extent extent;
} rows_input;

/* What an output is a result of. */
typedef enum rows_target { OF_ROW, OF_TOTAL, OF_COLUMNS } rows_target;

/* A kernel output, one element for each of these; the place is stored as int64. */
typedef struct rows_output {
    const char *value;
    int length; /* of its text */
    kn_dtype dtype;
    rows_target target;
    bool is_place;
} rows_output;

typedef struct rows_writer {
    kn_text *out;
    const kn_rows_code *code;
    const kn_rows_form *form;
    const kn_rows_pass *passes[MAX_PASSES]; /* over the elements of a row, and over the rows for the total */
    rows_input inputs[MAX_INPUTS];
    rows_output outputs[MAX_OUTPUTS];
    int num_passes, num_all_passes, num_inputs, num_outputs;
    char missing[KN_ROWS_INPUTS + 1]; /* the letters of missing inputs */
    char place[2];                    /* as a string; empty: unwanted */
} rows_writer;

/* Functions and types of one width. */
typedef struct rows_width {
    int width;
    const char *suffix;
} rows_width;

static inline const char *letters(const char *text) { return text ? text : ""; }
static inline bool has(const char *text, char letter) { return strchr(letters(text), letter) != NULL; }
static inline bool is_real(const rows_writer *w) { return kn_dtype_is_floating((kn_dtype)w->form->compute); }
static inline bool finds_places(const rows_writer *w) { return w->place[0] && w->form->stage == KN_ROWS_COMBINED; }

static inline bool scans_places(const rows_writer *w) { return w->place[0] && w->form->stage == KN_ROWS_SCAN; }

static inline bool scans_in_tiles(const rows_writer *w)
{
    return w->form->stage == KN_ROWS_SCAN && w->form->walk == KN_ALONG_ROWS && w->form->width > 1;
}

static inline bool has_total(const rows_writer *w) { return w->num_all_passes > w->num_passes; }

static inline bool has_segments(const rows_writer *w)
{
    bool any = false;
    for (int i = 0; i < w->num_inputs; i++)
        any = any || w->inputs[i].extent == PER_SEGMENT;
    return any;
}

/* Is it loaded by kn_load, for each index? */
static inline bool is_loaded(const rows_input *input) { return kn_rows_is_loaded(input->extent); }

/* Is it a constant of the row? */
static inline bool is_fixed(const rows_input *input) { return !is_loaded(input) && input->extent != FIELD_BEFORE; }
static inline bool is_picked(const rows_input *input)
{
    return input->extent == PICKED || input->extent == PICKED_PLACE;
}

/* --- rows_functions.c --------------------------------------------------------------------------------------------- */

/* #define of T and C, and their end. */
void kn_rows_write_types(const rows_writer *w, rows_width v);
void kn_rows_write_end_of_types(const rows_writer *w);

/* Loads `width` elements of input i from element `at` of `pointer`. */
void kn_rows_write_load(const rows_writer *w, int i, int width, const char *pointer, const char *at);

/* The macro that loads an input: KN_TAKE_ and this. */
const char *kn_rows_kind_of(const rows_input *input);

/* Text written between these is for one pass only. */
void kn_rows_begin_pass(const rows_writer *w, int pass);
void kn_rows_end_pass(const rows_writer *w);

/* kn_fixed and kn_element: the constants of a row, and its inputs. */
void kn_rows_write_fixed(const rows_writer *w, rows_width v);

/* Declares as locals the fields of a pass, the row's constants that are known before it, and the element. */
void kn_rows_write_fields(const rows_writer *w, rows_width v, int pass);
void kn_rows_write_fixed_locals(const rows_writer *w, int pass);
void kn_rows_write_element_locals(const rows_writer *w);

/* All functions of single elements, or of vectors. */
void kn_rows_write_functions(const rows_writer *w, rows_width v);

/* kn_join: merges a vector's halves repeatedly, down to one lane. */
void kn_rows_write_join(const rows_writer *w);

/* --- rows_vectors.c ----------------------------------------------------------------------------------------------- */

/* The library's functions of vectors of floats, in place of the driver's, between begin and end. */
typedef struct rows_vector_functions {
    bool exponential, elementary;
} rows_vector_functions;
rows_vector_functions kn_rows_begin_vector_functions(const rows_writer *w, rows_width v);
void kn_rows_end_vector_functions(const rows_writer *w, rows_vector_functions called);

/* Does the text call one of them, other than the exponential? */
bool kn_rows_calls_elementary(const rows_writer *w, const char *text);

/* --- rows_map.c --------------------------------------------------------------------------------------------------- */

/* The functions of rows with a map, a prepass or a total. */
void kn_rows_write_map(const rows_writer *w, rows_width v);

/* kn_conclude: the constants of one row, in all 16 lanes: computed in vectors of 16 if that calls the library's
 * functions, else of 4, since divisions are fast on short ones. */
void kn_rows_write_conclude(const rows_writer *w, rows_width four);

/* --- rows_results.c ----------------------------------------------------------------------------------------------- */

/* The outputs of `target`, as parameters (`declared`) or as arguments, each after a comma. */
void kn_rows_write_targets(const rows_writer *w, rows_target target, bool declared);

/* kn_put, and KN_PUT, which calls it; for vectors with the element count and the distance between rows. KN_PUT_TOTAL:
 * stores a total, as element `to`. */
void kn_rows_write_put(const rows_writer *w, rows_width v);
void kn_rows_write_put_total(const rows_writer *w, rows_width v);
void kn_rows_write_put_macro(const rows_writer *w, rows_width v, bool counts);

/* What cl/rows/scan_tiles.clh needs: the results at one place of all rows as a column of tiles, and stores of rows. */
void kn_rows_write_tiles(const rows_writer *w, rows_width v);

/* --- rows_frame.c ------------------------------------------------------------------------------------------------- */

void kn_rows_write_definitions(const rows_writer *w);
void kn_rows_write_parameters(const rows_writer *w);

/* KN_FIX and variants: the row's constants, for `width` neighbouring rows (`across`) or the same in all lanes. */
void kn_rows_write_fix(const rows_writer *w, const char *name, rows_width v, bool across);

/* KN_EARLIER: loads a state of the earlier launch, from element `at` of the fields. */
void kn_rows_write_earlier(const rows_writer *w);
