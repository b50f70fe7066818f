/* optim/scaler.cl - counts of steps that may be skipped, and the state of a gradient scaler. */
#include "common/koine.clh"

/* Counts a step for parameters first .. end - 1, unless an infinity was found (has_found: found_inf is there). */
KN_KERNEL_ONCE(count_steps, (KN_ARG(steps), KN_ARG(found_inf), first, end, has_found),
               KN_INOUT(steps), KN_IN(found_inf), const long first, const long end, const int has_found)
{
    KN_BIND_OUT(float, steps);
    const long i = first + (long)KN_ID(0);
    if (i < end && !(has_found && *(const global float *)(found_inf_base + found_inf_offset) != 0))
        steps[i] += 1;
}

#define MAX_OPTIMIZERS 16

/* state: scale, growth tracker, and for each optimizer whether its gradients were not finite, which is cleared. As
 * torch._amp_update_scale_. */
KN_KERNEL_ONCE(update_scale, (KN_ARG(state), growth, backoff, interval),
               KN_INOUT(state), const float growth, const float backoff, const int interval)
{
    KN_BIND_OUT(float, state);
    if (KN_ID(0) != 0)
        return;
    int found = 0;
    for (int i = 0; i < MAX_OPTIMIZERS; i++) {
        found |= state[2 + i] != 0;
        state[2 + i] = 0;
    }
    if (found) {
        state[0] *= backoff;
        state[1] = 0;
    } else if (state[1] + 1 >= interval) {
        const float grown = state[0] * growth;
        state[0] = isinf(grown) ? state[0] : grown; /* a scale stays finite */
        state[1] = 0;
    } else {
        state[1] += 1;
    }
}
