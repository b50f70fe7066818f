/* rnn/cells.cl - a step of a recurrent layer, given the product with the state: one element of the hidden state at a
 * time, on any device. The formulas are in rnn/cells.clh. */
#include "common/koine.clh"

#define R T
#define LOAD(p) (*(p))
#define STORE(value, p) (*(p) = (value))
#define SIGMOID(a) ((T)1 / ((T)1 + exp(-(a))))
#define TANH tanh
#include "rnn/cells.clh"

/* product: [batch, GATES, hidden]. */
KN_KERNEL_ONCE(rnn_forward,
               (KN_ARG(gates), KN_ARG(product), KN_ARG(bias), KN_ARG(state), KN_ARG(next), KN_ARG(output),
                KN_ARG(cell), KN_ARG(extra), KN_ARG(lengths), s, fault, fault_operation),
               KN_INOUT(gates), KN_IN(product), KN_IN(bias), KN_IN(state), KN_OUT(next), KN_OUT(output), KN_IN(cell),
               KN_OUT(extra), KN_IN(lengths), const kn_rnn_step s, KN_FAULT)
{
    KN_BIND_OUT(T, gates);
    KN_BIND_IN(T, product);
    KN_BIND_IN(T, bias);
    KN_BIND_IN(T, state);
    KN_BIND_OUT(T, next);
    KN_BIND_OUT(T, output);
    KN_BIND_IN(T, cell);
    KN_BIND_OUT(T, extra);
    KN_BIND_IN(long, lengths);
    const forward_operands to = {gates, bias, state, next, output, cell, extra, lengths};
    KN_FOR_ONCE(e, s.batch * s.hidden)
    {
        const long row = e / s.hidden, column = e % s.hidden;
        T sum[GATES];
        for (int g = 0; g < GATES; g++)
            sum[g] = product[(row * GATES + g) * s.hidden + column];
        if (s.has_lengths && s.time == 0 && (lengths[row] < 0 || lengths[row] > s.steps))
            kn_report_index(fault, lengths[row], s.steps + 1);
        cell_forward(to, s, row, column, sum, 1);
    }
}

KN_KERNEL_ONCE(rnn_backward,
               (KN_ARG(gates), KN_ARG(state), KN_ARG(cell), KN_ARG(extra), KN_ARG(d_output), KN_ARG(d_state),
                KN_ARG(d_cell), KN_ARG(d_gates), KN_ARG(d_products), KN_ARG(lengths), s),
               KN_IN(gates), KN_IN(state), KN_IN(cell), KN_IN(extra), KN_IN(d_output), KN_INOUT(d_state),
               KN_INOUT(d_cell), KN_OUT(d_gates), KN_OUT(d_products), KN_IN(lengths), const kn_rnn_step s)
{
    KN_BIND_IN(T, gates);
    KN_BIND_IN(T, state);
    KN_BIND_IN(T, cell);
    KN_BIND_IN(T, extra);
    KN_BIND_IN(T, d_output);
    KN_BIND_OUT(T, d_state);
    KN_BIND_OUT(T, d_cell);
    KN_BIND_OUT(T, d_gates);
    KN_BIND_OUT(T, d_products);
    KN_BIND_IN(long, lengths);
    const backward_operands to = {gates,  state,   cell,       extra,  d_output, d_state,
                                  d_cell, d_gates, d_products, lengths};
    KN_FOR_ONCE(e, s.batch * s.hidden)
    {
        cell_backward(to, s, e / s.hidden, e % s.hidden, 0, 1);
    }
}

/* --- projected states, [batch, hidden], whose rows stay past their sequence's end --------------------------------- */

/* next holds the projection. */
KN_KERNEL_ONCE(rnn_keep, (KN_ARG(state), KN_ARG(next), KN_ARG(output), KN_ARG(lengths), s),
               KN_IN(state), KN_INOUT(next), KN_OUT(output), KN_IN(lengths), const kn_rnn_step s)
{
    KN_BIND_IN(T, state);
    KN_BIND_OUT(T, next);
    KN_BIND_OUT(T, output);
    KN_BIND_IN(long, lengths);
    KN_FOR_ONCE(e, s.batch * s.hidden)
    {
        const bool over = is_over(lengths, e / s.hidden, s);
        if (over)
            next[e] = state[e];
        output[e] = over ? (T)0 : next[e];
    }
}

/* d_next: the gradient of the projection; d_state stays where the state did. */
KN_KERNEL_ONCE(rnn_keep_backward, (KN_ARG(d_output), KN_ARG(d_state), KN_ARG(d_next), KN_ARG(lengths), s),
               KN_IN(d_output), KN_INOUT(d_state), KN_OUT(d_next), KN_IN(lengths), const kn_rnn_step s)
{
    KN_BIND_IN(T, d_output);
    KN_BIND_OUT(T, d_state);
    KN_BIND_OUT(T, d_next);
    KN_BIND_IN(long, lengths);
    KN_FOR_ONCE(e, s.batch * s.hidden)
    {
        const bool over = is_over(lengths, e / s.hidden, s);
        const T d = d_state[e];
        d_next[e] = over ? (T)0 : s.has_gradient ? d + d_output[e] : d;
        d_state[e] = over ? d : (T)0;
    }
}
