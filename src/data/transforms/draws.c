/* data/transforms/draws.c - uniform, normal and beta random numbers. */
#include "data/transforms/draws.h"

#include <math.h>

#include "tensor/philox.h"

enum { PURPOSE_TRANSFORM = 3 }; /* data/order.c uses a seed as key, or 2 */

double kn_draw(kn_draws *draws)
{
    uint32_t words[4] = {draws->used++, draws->step, 0, (uint32_t)PURPOSE_TRANSFORM << 30};
    kn_philox4x32(words, (uint32_t)draws->random, (uint32_t)(draws->random >> 32));
    return kn_uniform_f64(words[0], words[1]);
}

double kn_draw_between(kn_draws *draws, double low, double high) { return low + (high - low) * kn_draw(draws); }

double kn_draw_log_between(kn_draws *draws, const double range[2])
{
    return exp(kn_draw_between(draws, log(range[0]), log(range[1])));
}

int64_t kn_draw_below(kn_draws *draws, int64_t end)
{
    const int64_t drawn = (int64_t)(kn_draw(draws) * (double)end);
    return drawn < end ? drawn : end - 1;
}

/* Box and Muller. */
double kn_draw_normal(kn_draws *draws)
{
    const double radius = sqrt(-2 * log(1 - kn_draw(draws)));
    return radius * cos(6.283185307179586 * kn_draw(draws));
}

/* Marsaglia and Tsang 2000, of the logarithm: gamma variates of small alpha underflow. */
static double log_gamma_variate(kn_draws *draws, double alpha)
{
    if (alpha < 1)
        return log_gamma_variate(draws, alpha + 1) + log(1 - kn_draw(draws)) / alpha;
    const double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = kn_draw_normal(draws), root = 1 + c * x, v = root * root * root;
        if (v > 0 && log(1 - kn_draw(draws)) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v);
    }
}

double kn_draw_beta(kn_draws *draws, double alpha)
{
    const double x = log_gamma_variate(draws, alpha), y = log_gamma_variate(draws, alpha);
    return 1 / (1 + exp(y - x));
}
