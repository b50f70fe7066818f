/* loss/ctc_cpu.cl - CTC loss on CPU devices: a work-item per sample, 16 states at a time. See loss/ctc.clh. */
#include "loss/ctc.clh"

#define LANES 16
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(T, 16) lanes;

/* log(exp a + exp b + exp c), minus infinity where all are. */
static inline lanes kn_log_sum_of_three(const lanes a, const lanes b, const lanes c)
{
    const lanes most = fmax(a, fmax(b, c)), least = most == (lanes)NOTHING ? (lanes)0 : most;
    return most + log(exp(a - least) + exp(b - least) + exp(c - least));
}

/* The log-probabilities of 16 states at one time. */
static inline lanes kn_emit(const global T *lp, const global int *label)
{
    T each[LANES];
    for (int j = 0; j < LANES; j++)
        each[j] = label[j] < 0 ? NOTHING : lp[label[j]];
    return vload16(0, each);
}

KN_KERNEL_ONCE(ctc_forward, (KN_CTC_FORWARD_ARGUMENTS), KN_CTC_FORWARD)
{
    KN_BIND_CTC_FORWARD;
    KN_FOR_ONCE (n, p.samples) {
        KN_CTC_FORWARD_SAMPLE(n);
        const long end = p.width - LANES;
        for (long s = 0; s < p.width - KN_CTC_BEFORE; s++) {
            jump[KN_CTC_BEFORE + s] = kn_jump(own, s, labels);
            labelled[s] = kn_label(own, s, labels, p, fault, fault_operation);
        }
        for (int s = 0; s < KN_CTC_BEFORE; s++) {
            jump[s] = NOTHING;
            labelled[p.width - 1 - s] = -1;
        }
        for (long t = 0; t < steps; t++) {
            global T *row = rows + t * p.width;
            const global T *before = row - p.width, *emitted = lp + (t * p.samples + n) * p.classes;
            if (t == 0) {
                for (long s = 0; s < p.width; s++)
                    row[s] = NOTHING;
                for (long s = 0; s <= min(2 * labels, 1L); s++)
                    row[KN_CTC_BEFORE + s] = labelled[s] < 0 ? NOTHING : emitted[labelled[s]];
                continue;
            }
            for (long s = 0; s < end; s += LANES) {
                const lanes stay = vload16(0, before + s + 2), next = vload16(0, before + s + 1);
                const lanes jumped = vload16(0, before + s) + vload16(0, jump + KN_CTC_BEFORE + s);
                vstore16(kn_log_sum_of_three(stay, next, jumped) + kn_emit(emitted, labelled + s), 0,
                         row + KN_CTC_BEFORE + s);
            }
            for (int s = 0; s < KN_CTC_BEFORE; s++)
                row[s] = NOTHING;
        }
        loss[n] = kn_loss(rows + (steps - 1) * p.width + KN_CTC_BEFORE, steps, labels);
    }
}

/* gradient [steps, samples, classes] = -posterior times g [samples]; beta [samples, 2, width]. */
KN_KERNEL_ONCE(ctc_backward, (KN_CTC_BACKWARD_ARGUMENTS), KN_CTC_BACKWARD)
{
    KN_BIND_CTC_BACKWARD;
    KN_FOR_ONCE (n, p.samples) {
        KN_CTC_BACKWARD_SAMPLE(n);
        const long end = p.width - LANES;
        for (long t = p.steps - 1; t >= 0; t--) {
            global T *row = beta + (2 * n + t % 2) * p.width, *to = gradient + (t * p.samples + n) * p.classes;
            const global T *after = beta + (2 * n + (t + 1) % 2) * p.width;
            const global T *emitted = lp + (t * p.samples + n) * p.classes;
            const T filled = impossible && t < steps && !zero_infinity ? (T)NAN : (T)0;
            for (long c = 0; c < p.classes; c++)
                to[c] = filled;
            if (impossible || t >= steps)
                continue;
            for (long s = end; s < p.width; s++)
                row[s] = NOTHING;
            for (long s = 0; s < end; s += LANES) {
                const lanes emit = kn_emit(emitted, labelled + s);
                lanes sum;
                if (t == steps - 1) {
                    T last[LANES];
                    for (int j = 0; j < LANES; j++)
                        last[j] = s + j == 2 * labels || s + j == 2 * labels - 1 ? (T)0 : NOTHING;
                    sum = vload16(0, last);
                } else {
                    const lanes jumped = vload16(0, after + s + 2) + vload16(0, jump + KN_CTC_BEFORE + s + 2);
                    sum = kn_log_sum_of_three(vload16(0, after + s), vload16(0, after + s + 1), jumped);
                }
                T part[LANES];
                vstore16(sum + emit, 0, row + s);
                vstore16(exp(vload16(0, rows + t * p.width + KN_CTC_BEFORE + s) + sum + (lanes)(loss[n])), 0, part);
                for (int j = 0; j < LANES; j++)
                    if (labelled[s + j] >= 0)
                        to[labelled[s + j]] -= g[n] * part[j];
            }
        }
    }
}
