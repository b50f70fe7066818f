/* loss/ctc.h - the sizes of a CTC loss (loss/ctc.clh). */
#pragma once

#include "common/shared.h"

/* Rows of states have `width` elements: KN_CTC_BEFORE of minus infinity, the states, and more of these. */
#define KN_CTC_BEFORE 2
typedef struct kn_ctc {
    kn_long steps, samples, classes;
    kn_long padded;  /* labels per row of the targets; 0: they follow one another */
    kn_long targets; /* all of them */
    kn_long longest; /* target */
    kn_long width, blank;
} kn_ctc;
KN_SHARED_SIZE(kn_ctc, 8 * 8);
