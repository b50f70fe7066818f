/* ops/conv/any/reference.c - convolution on any device, one sum per element of the result (cl/conv/any/reference.cl).
 */
#include "ops/conv/common/conv.h"

/* T, VOLUME. */
static const char *options_of(const kn_conv_shape *s)
{
    static const char *const options[2][2] = {
        {"-DT=float -DVOLUME=0", "-DT=float -DVOLUME=1"},
        {"-DT=double -DKN_USE_F64 -DVOLUME=0", "-DT=double -DKN_USE_F64 -DVOLUME=1"},
    };
    return options[s->f64][!kn_conv_is_flat(s)];
}

kn_status kn_conv_run_reference(kn_stream *stream, const void *problem_)
{
    static const char *const kernels[] = {"conv_reference_forward", "conv_reference_data", "conv_reference_weights"};
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_side to = kn_conv_to(problem);
    const int64_t weights = s->out_channels * kn_conv_taps(s),
                  results = s->images * s->groups * to.channels * kn_conv_volume(to.size);
    const kn_arg x = kn_conv_arg(s, problem->x), y = kn_conv_arg(s, problem->y), w = kn_conv_arg(s, problem->weight),
                 by_shape = kn_arg_struct(s, sizeof *s);
    const kn_arg forward[] = {x, w, kn_conv_bias_arg(problem), y, by_shape, KN_CONV_EPILOGUE_ARGS(problem)};
    const kn_arg data[] = {y, w, x, by_shape},
                 gradient[] = {x, y, w, by_shape}, *const args[] = {forward, data, gradient};
    KN_TRY(kn_run(stream, .source = "conv/any/reference.cl", .kernel = kernels[problem->pass],
                  .operation = kn_conv_operation(problem), .options = options_of(s), .dims = 1,
                  .global = {kn_conv_work_items(stream, problem->pass == KN_CONV_WEIGHTS ? weights : results)},
                  .args = args[problem->pass], .num_args = problem->pass == KN_CONV_FORWARD ? 8 : 4));
    return problem->pass == KN_CONV_WEIGHTS && problem->bias.buffer ? kn_conv_bias_gradient(stream, problem) : KN_OK;
}
