/* ops/conv2d_choice.c - the implementations of each pass of a convolution, best first. */
#include "ops/conv2d.h"

#define ROWS(rows) rows, (int)(sizeof rows / sizeof rows[0])

kn_status kn_conv2d_run_forward(kn_stream *stream, const kn_conv2d_problem *problem)
{
    static const kn_implementation rows[] = {
        {"rows", kn_conv2d_accepts_rows, kn_conv2d_rows_forward},
        {"images", kn_conv2d_accepts_images, kn_conv2d_images_forward},
        {"direct", kn_conv2d_accepts_direct, kn_conv2d_direct_forward},
        {"gather", kn_conv2d_accepts_gather, kn_conv2d_reference_forward},
        {"lowered", NULL, kn_conv2d_lowered_forward},
        {"reference", NULL, kn_conv2d_reference_forward},
    };
    static const kn_implementation_table table = {"conv2d", ROWS(rows)};
    return kn_run_implementation(&table, stream, problem);
}

kn_status kn_conv2d_run_backward_data(kn_stream *stream, const kn_conv2d_problem *problem)
{
    static const kn_implementation rows[] = {
        {"rows", kn_conv2d_accepts_rows_data, kn_conv2d_rows_backward_data},
        {"images", kn_conv2d_accepts_images_data, kn_conv2d_images_backward_data},
        {"direct", kn_conv2d_accepts_direct_data, kn_conv2d_direct_backward_data},
        {"gather", kn_conv2d_accepts_gather, kn_conv2d_reference_backward_data},
        {"lowered", NULL, kn_conv2d_lowered_backward_data},
        {"reference", NULL, kn_conv2d_reference_backward_data},
    };
    static const kn_implementation_table table = {"conv2d_backward_data", ROWS(rows)};
    return kn_run_implementation(&table, stream, problem);
}

kn_status kn_conv2d_run_backward_weights(kn_stream *stream, const kn_conv2d_problem *problem)
{
    static const kn_implementation rows[] = {
        {"rows", kn_conv2d_accepts_rows_weights, kn_conv2d_rows_backward_weights},
        {"direct", kn_conv2d_accepts_direct_weights, kn_conv2d_direct_backward_weights},
        {"gather", kn_conv2d_accepts_gather, kn_conv2d_reference_backward_weights},
        {"lowered", NULL, kn_conv2d_lowered_backward_weights},
        {"reference", NULL, kn_conv2d_reference_backward_weights},
    };
    static const kn_implementation_table table = {"conv2d_backward_weights", ROWS(rows)};
    return kn_run_implementation(&table, stream, problem);
}
