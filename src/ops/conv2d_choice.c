/* ops/conv2d_choice.c - the implementations of each pass of a convolution, best first. */
#include "ops/conv2d.h"

static const kn_implementation forward[] = {
    {"rows", kn_conv2d_supports_rows, kn_conv2d_prefers_rows, kn_conv2d_rows_forward},
    {"images", kn_conv2d_supports_images, kn_conv2d_prefers_images, kn_conv2d_images_forward},
    {"direct", kn_conv2d_supports_direct, kn_conv2d_prefers_direct, kn_conv2d_direct_forward},
    {"lowered", kn_conv2d_supports_lowered, kn_conv2d_prefers_lowered, kn_conv2d_lowered_forward},
    {"reference", NULL, NULL, kn_conv2d_reference_forward},
};
const kn_implementation_table kn_conv2d_implementations = KN_IMPLEMENTATION_TABLE("conv2d", forward);

static const kn_implementation backward_data[] = {
    {"rows", kn_conv2d_supports_rows_data, kn_conv2d_prefers_rows_data, kn_conv2d_rows_backward_data},
    {"images", kn_conv2d_supports_images, kn_conv2d_prefers_images_data, kn_conv2d_images_backward_data},
    {"direct", kn_conv2d_supports_direct_data, kn_conv2d_prefers_direct_data, kn_conv2d_direct_backward_data},
    {"lowered", kn_conv2d_supports_lowered, kn_conv2d_prefers_lowered, kn_conv2d_lowered_backward_data},
    {"reference", NULL, NULL, kn_conv2d_reference_backward_data},
};
const kn_implementation_table kn_conv2d_backward_data_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d_backward_data", backward_data);

static const kn_implementation backward_weights[] = {
    {"rows", kn_conv2d_supports_rows_weights, kn_conv2d_prefers_rows_weights, kn_conv2d_rows_backward_weights},
    {"direct", kn_conv2d_supports_direct_weights, kn_conv2d_prefers_direct_weights, kn_conv2d_direct_backward_weights},
    {"lowered", kn_conv2d_supports_lowered, kn_conv2d_prefers_lowered, kn_conv2d_lowered_backward_weights},
    {"reference", NULL, NULL, kn_conv2d_reference_backward_weights},
};
const kn_implementation_table kn_conv2d_backward_weights_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d_backward_weights", backward_weights);

kn_status kn_conv2d_run_forward(kn_stream *stream, const kn_conv2d_problem *problem)
{
    return kn_run_implementation(&kn_conv2d_implementations, stream, problem);
}

kn_status kn_conv2d_run_backward_data(kn_stream *stream, const kn_conv2d_problem *problem)
{
    return kn_run_implementation(&kn_conv2d_backward_data_implementations, stream, problem);
}

kn_status kn_conv2d_run_backward_weights(kn_stream *stream, const kn_conv2d_problem *problem)
{
    return kn_run_implementation(&kn_conv2d_backward_weights_implementations, stream, problem);
}
