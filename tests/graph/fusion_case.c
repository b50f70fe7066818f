/* fusion_case.c - see fusion_case.h. */
#include "fusion_case.h"

#include <stdlib.h>
#include <string.h>

kn_tensor *fusion_input(const char *name, int ndim, const int64_t *shape, kn_dtype dtype)
{
    kn_tensor *x = random_tensor(name, ndim, shape, -1, false, dtype);
    CHECK_TENSOR(x);
    return x;
}

void fusion_check_same(const kn_tensor *a, const kn_tensor *b)
{
    size_t sizes[2];
    void *first = read_bytes(a, &sizes[0]), *second = read_bytes(b, &sizes[1]);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(first, second, sizes[0]);
    free(first);
    free(second);
}

void fusion_run_eagerly(fusion_program program, fusion_run *run, kn_tensor *const *inputs, bool fused)
{
    KN_FUSE(fused);
    KN_SCOPE;
    program(run, inputs);
}

int fusion_run_captured(fusion_program program, fusion_run *run, kn_tensor *const *inputs)
{
    kn_graph *graph = kn_graph_new();
    CHECK_NEW(graph);
    CHECK_OK(kn_graph_capture_begin(graph, NULL));
    {
        KN_SCOPE;
        program(run, inputs);
    }
    CHECK_OK(kn_graph_capture_end(graph));
    const int commands = kn_graph_command_count(graph);
    CHECK_OK(kn_graph_replay(graph));
    CHECK_OK(kn_synchronize(NULL));
    kn_graph_free(graph);
    return commands;
}

void fusion_release(fusion_run *run)
{
    for (int r = 0; r < run->count; r++)
        kn_release(run->results[r]);
    run->count = 0;
}

void fusion_compare(fusion_program program, void (*make)(kn_tensor *inputs[4]), int commands)
{
    kn_tensor *inputs[3][4] = {{NULL}};
    fusion_run runs[3] = {{{NULL}, 0}};
    KN_SCOPE;
    for (int i = 0; i < 3; i++)
        make(inputs[i]);
    fusion_run_eagerly(program, &runs[0], inputs[0], false);
    fusion_run_eagerly(program, &runs[1], inputs[1], true);
    const int recorded = fusion_run_captured(program, &runs[2], inputs[2]);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(runs[i].count, runs[0].count);
        for (int r = 0; r < runs[0].count; r++)
            fusion_check_same(runs[0].results[r], runs[i].results[r]);
        for (int n = 0; n < 4; n++)
            if (inputs[0][n])
                fusion_check_same(inputs[0][n], inputs[i][n]);
    }
    for (int i = 0; i < 3; i++)
        fusion_release(&runs[i]);
    if (commands > 0)
        assert_int_equal(recorded, commands);
}
