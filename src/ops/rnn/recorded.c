#include "ops/rnn/layer.h"
kn_status kn_rnn_backward_recorded(kn_grad_call *grad)
{
    (void)grad;
    return KN_ERR_STATE;
}
