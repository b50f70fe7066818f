/* pool/unpool.cl - max unpooling: each element goes to its place; where several have the same place the last one wins,
 * which an integer maximum decides, whatever the order. */
#include "common/koine.clh"

/* winners[place] = 1 + the last element of the plane that goes there; 0 before. */
kernel void max_unpool_mark(KN_IN(indices), KN_INOUT(winners), const long planes, const long inputs, const long outputs,
                            KN_FAULT KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(int, winners);
    KN_FOR(i, planes * inputs)
    {
        const long plane = i / inputs, at = indices[i];
        if (at >= 0 && at < outputs)
            atomic_max(&winners[plane * outputs + at], (int)(i - plane * inputs) + 1);
        else
            kn_report_index(fault, at, outputs);
    }
}

kernel void max_unpool(KN_IN(x), KN_IN(winners), KN_OUT(y), const long planes, const long inputs,
                       const long outputs KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(T, x);
    KN_BIND_IN(int, winners);
    KN_BIND_OUT(T, y);
    KN_FOR(i, planes * outputs)
    {
        const int winner = winners[i];
        y[i] = winner > 0 ? x[i / outputs * inputs + winner - 1] : (T)0;
    }
}
