/* pool/unpool.cl - max unpooling: each element goes to its place; where several have the same place the last one wins.
 */
#include "common/koine.clh"

#ifdef KN_CPU

/* A work-item writes whole planes, in the order of the elements. */
KN_KERNEL_ONCE(max_unpool, (KN_ARG(x), KN_ARG(indices), KN_ARG(y), planes, inputs, outputs, fault, fault_operation),
               KN_IN(x), KN_IN(indices), KN_OUT(y), const long planes, const long inputs, const long outputs, KN_FAULT)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(T, y);
    KN_FOR_ONCE(plane, planes)
    {
        const global T *from = x + plane * inputs;
        const global long *places = indices + plane * inputs;
        global T *to = y + plane * outputs;
        for (long i = 0; i < outputs; i++)
            to[i] = 0;
        for (long i = 0; i < inputs; i++)
            if (places[i] >= 0 && places[i] < outputs)
                to[places[i]] = from[i];
            else
                kn_report_index(fault, places[i], outputs);
    }
}

#else

/* An integer maximum decides which is the last one, whatever the order. */

/* winners[place] = 1 + the last element of the plane that goes there; 0 before. */
KN_KERNEL_ONCE(max_unpool_mark, (KN_ARG(indices), KN_ARG(winners), planes, inputs, outputs, fault, fault_operation),
               KN_IN(indices), KN_INOUT(winners), const long planes, const long inputs, const long outputs, KN_FAULT)
{
    KN_BIND_IN(long, indices);
    KN_BIND_OUT(int, winners);
    KN_FOR_ONCE(i, planes * inputs)
    {
        const long plane = i / inputs, at = indices[i];
        if (at >= 0 && at < outputs)
            atomic_max(&winners[plane * outputs + at], (int)(i - plane * inputs) + 1);
        else
            kn_report_index(fault, at, outputs);
    }
}

KN_KERNEL_ONCE(max_unpool, (KN_ARG(x), KN_ARG(winners), KN_ARG(y), planes, inputs, outputs),
               KN_IN(x), KN_IN(winners), KN_OUT(y), const long planes, const long inputs, const long outputs)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(int, winners);
    KN_BIND_OUT(T, y);
    KN_FOR_ONCE(i, planes * outputs)
    {
        const int winner = winners[i];
        y[i] = winner > 0 ? x[i / outputs * inputs + winner - 1] : (T)0;
    }
}

#endif
