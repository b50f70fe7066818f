/* data/transforms/draws.h - the random numbers of one step for one sample: Philox4x32-10 with the sample's number as
 * key and (draw, step, purpose) as counter. */
#pragma once

#include <koine/common.h>

typedef struct kn_draws {
    uint64_t random; /* the sample's */
    uint32_t step, used;
} kn_draws;

double kn_draw(kn_draws *draws);                                    /* uniform in [0, 1) */
double kn_draw_between(kn_draws *draws, double low, double high);   /* uniform; low if both are equal */
double kn_draw_log_between(kn_draws *draws, const double range[2]); /* its logarithm is uniform */
int64_t kn_draw_below(kn_draws *draws, int64_t end);                /* 0 to end - 1 */
double kn_draw_normal(kn_draws *draws);
double kn_draw_beta(kn_draws *draws, double alpha); /* Beta(alpha, alpha) */
