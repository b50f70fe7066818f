/* loss/ctc_gpu.cl - CTC loss on GPUs: a work-group per sample, whose work-items share the states. See loss/ctc.clh. */
#include "loss/ctc.clh"

#define KN_EACH(i, n) for (long i = get_local_id(0); i < (n); i += get_local_size(0))

/* fmax passes over NaN, which the exponentials then keep. */
static inline T kn_log_sum_of_three(const T a, const T b, const T c)
{
    const T most = fmax(a, fmax(b, c)), shift = most == NOTHING ? (T)0 : most;
    return most + log(exp(a - shift) + exp(b - shift) + exp(c - shift));
}

static inline T kn_emit(const global T *lp, const int label) { return label < 0 ? NOTHING : lp[label]; }

kernel void ctc_forward(KN_CTC_FORWARD)
{
    KN_BIND_CTC_FORWARD;
    for (long n = get_group_id(0); n < p.samples; n += get_num_groups(0)) {
        KN_CTC_FORWARD_SAMPLE(n);
        KN_EACH (s, p.width) {
            const long state = s - KN_CTC_BEFORE;
            jump[s] = state < 0 ? NOTHING : kn_jump(own, state, labels);
            labelled[s] = kn_label(own, s, labels, p, fault, fault_operation);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (long t = 0; t < steps; t++) {
            global T *row = rows + t * p.width;
            const global T *before = row - p.width, *emitted = lp + (t * p.samples + n) * p.classes;
            KN_EACH (s, p.width) {
                const long state = s - KN_CTC_BEFORE;
                T sum = 0;
                if (t > 0 && state >= 0)
                    sum = kn_log_sum_of_three(before[s], before[s - 1], before[s - 2] + jump[s]);
                const bool is_reached = state >= 0 && (t > 0 || state <= 1);
                row[s] = is_reached ? sum + kn_emit(emitted, labelled[state]) : NOTHING;
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
        }
        if (get_local_id(0) == 0)
            loss[n] = kn_loss(rows + (steps - 1) * p.width + KN_CTC_BEFORE, steps, labels);
    }
}

/* gradient [steps, samples, classes] = -posterior times g [samples]; beta [samples, 3, width]: two rows of it, and the
 * posteriors of a row's states, of which each work-item adds those of its classes. */
kernel void ctc_backward(KN_CTC_BACKWARD)
{
    KN_BIND_CTC_BACKWARD;
    for (long n = get_group_id(0); n < p.samples; n += get_num_groups(0)) {
        KN_CTC_BACKWARD_SAMPLE(n);
        const long end = p.width - KN_CTC_BEFORE;
        global T *posterior = beta + (3 * n + 2) * p.width;
        for (long t = p.steps - 1; t >= 0; t--) {
            global T *row = beta + (3 * n + t % 2) * p.width, *to = gradient + (t * p.samples + n) * p.classes;
            const global T *after = beta + (3 * n + (t + 1) % 2) * p.width;
            const global T *emitted = lp + (t * p.samples + n) * p.classes;
            const bool counts = !impossible && t < steps;
            KN_EACH (s, counts ? p.width : 0) {
                T sum = NOTHING;
                if (t == steps - 1)
                    sum = s == 2 * labels || s == 2 * labels - 1 ? (T)0 : NOTHING;
                else if (s + KN_CTC_BEFORE + 2 < p.width)
                    sum = kn_log_sum_of_three(after[s], after[s + 1], after[s + 2] + jump[KN_CTC_BEFORE + s + 2]);
                row[s] = sum + kn_emit(emitted, labelled[s]);
                posterior[s] = s < end ? exp(rows[t * p.width + KN_CTC_BEFORE + s] + sum + loss[n]) : (T)0;
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
            KN_EACH (c, p.classes) {
                T sum = impossible && t < steps && !zero_infinity ? (T)NAN : (T)0;
                for (long s = c == p.blank ? 0 : 1; counts && s <= 2 * labels; s += c == p.blank ? 1 : 2)
                    sum += labelled[s] == c ? posterior[s] : (T)0;
                to[c] = -g[n] * sum;
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
        }
    }
}
