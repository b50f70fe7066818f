/* gpu_programs.c - writes the GPU kernels whose registers matter to a folder, for tools/gpu-code.py: each arithmetic,
 * block shape and orientation of the operands of products, and convolutions, Winograd's and attention's kernels; their
 * options as a comment in the first line. With KOINE_TEST_FULL=1 all of them. (Every other kernel is recorded while it
 * is used: support/record_programs.c.) gpu_programs FOLDER */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/gemm/blocked.h"
#include "rt/program/program.h"
#include "support/full.h"

static const char *folder;
static int written, failures;

static void write_program(const char *source, const char *options)
{
    char path[512], *text;
    snprintf(path, sizeof path, "%s/%03d.cl", folder, written++);
    if (kn_kernel_source_text(&text, source) != KN_OK) {
        printf("FAIL %s: %s\n", source, kn_error_message());
        failures++;
        return;
    }
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "// %s\n%s", options, text) < 0 || fclose(file) != 0) {
        printf("FAIL %s cannot be written\n", path);
        failures++;
    }
    kn_free(text);
}

/* By default one layout, and of the shapes in f64 and TF32 the first. */
static void write_arithmetic(kn_block_arithmetic arithmetic)
{
    const bool tensor = kn_block_by_tensor_cores(arithmetic);
    const kn_block_shape *s, *first = NULL;
    char options[KN_BLOCK_OPTIONS];
    for (int i = 0; (s = kn_block_shape_at(i)); i++) {
        if (s->tensor_cores != tensor || !(s->efficiency > 0) || (first && arithmetic != KN_BLOCK_F32 && !test_full()))
            continue;
        for (int layout = 0; layout < (first || !test_full() ? 1 : 4); layout++)
            write_program("gemm/blocked.cl", kn_block_options(options, s, arithmetic, !(layout & 1), layout & 2, ""));
        first = first ? first : s;
    }
    for (int weights = 0; weights < 2; weights++)
        write_program("conv/gpu/blocked.cl",
                      kn_block_options(options, first, arithmetic, true, weights, weights ? " -DPASS=1" : " -DPASS=0"));
}

/* The f16 kernel, for processors without and with asynchronous copies: by default every other shape. */
static void write_halves(void)
{
    const kn_block_shape *s;
    char options[KN_BLOCK_OPTIONS];
    for (int least = 75; least <= 80; least += 5) {
        const kn_limits limits = {.ptx_capability = least, .local_memory = 48 << 10, .max_work_group_size = 1024};
        int layout = 0;
        for (int i = 0; (s = kn_block_shape_at(i)); i++)
            if (kn_block_fits(s, &limits, KN_BLOCK_F16) && (i % 2 == 0 || test_full())) {
                write_program("gemm/halves.cl", kn_gemm_halves_options(options, &limits, s, !(layout & 1), layout & 2));
                layout++;
            }
    }
}

/* Winograd's: the vectors of rows of 56, 14 and 7 pixels, padded by one, and those of a 5 x 5 kernel. Attention's: the
 * widest heads of each size of block, which need the most registers. */
static void write_others(void)
{
    static const char *const winograd[] = {"-DT=float -DWRI=3 -DWRJ=3 -DWMI=4 -DXN=4 -DXPHASE=3 -DYN=4",
                                           "-DT=float -DWRI=3 -DWRJ=3 -DWMI=4 -DXN=2 -DXPHASE=1 -DYN=2",
                                           "-DT=float -DWRI=3 -DWRJ=3 -DWMI=4 -DXN=1 -DXPHASE=0 -DYN=1",
                                           "-DT=float -DWRI=5 -DWRJ=5 -DWMI=2 -DXN=2 -DXPHASE=0 -DYN=2",
                                           "-DT=double -DKN_USE_F64 -DWRI=3 -DWRJ=3 -DWMI=4 -DXN=4 -DXPHASE=3 -DYN=4",
                                           "-DT=double -DKN_USE_F64 -DWRI=5 -DWRJ=5 -DWMI=4 -DXN=1 -DXPHASE=0 -DYN=1"};
    static const char *const attention[] = {"-DT=float -DS=float -DBLOCK=64 -DPARTS=8",
                                            "-DT=float -DS=float -DBLOCK=32 -DPARTS=16",
                                            "-DT=float -DS=ushort -DKN_BFLOAT -DBLOCK=64 -DPARTS=4",
                                            "-DT=float -DS=half -DKN_HALF -DBLOCK=64 -DPARTS=4",
                                            "-DT=double -DKN_USE_F64 -DS=double -DBLOCK=32 -DPARTS=8",
                                            "-DT=double -DKN_USE_F64 -DS=double -DBLOCK=16 -DPARTS=16"};
    for (size_t i = 0; i < sizeof winograd / sizeof winograd[0]; i++)
        write_program("conv/gpu/winograd.cl", winograd[i]);
    for (size_t i = 0; i < sizeof attention / sizeof attention[0]; i++) {
        write_program("attention/forward_gpu.cl", attention[i]);
        write_program("attention/backward_gpu.cl", attention[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    for (int arithmetic = KN_BLOCK_F32; arithmetic <= KN_BLOCK_TF32; arithmetic++)
        write_arithmetic((kn_block_arithmetic)arithmetic);
    write_halves();
    write_others();
    printf("%d programs\n", written);
    return failures > 0;
}
