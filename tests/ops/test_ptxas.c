/* test_ptxas.c - NVIDIA's assembler accepts the GPU kernels: each arithmetic, each block shape, each orientation of the
 * operands, compiled to PTX by clang and assembled for the processors from compute capability 7.0 on that have the
 * instructions. Prints registers and spills. Skipped if clang, libclc's nvptx64--nvidiacl.bc or ptxas is missing;
 * KOINE_CLANG, KOINE_LIBCLC and KOINE_PTXAS give other locations. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "ops/gemm/blocked.h"
#include "rt/program/program.h"
#include "support/full.h"

static const char *clang, *library, *ptxas;
static char folder[] = "/tmp/koine-ptxas-XXXXXX";
static const int capabilities[] = {70, 75, 80, 86, 89, 90};
enum { CAPABILITIES = sizeof capabilities / sizeof capabilities[0] };
static bool known[CAPABILITIES]; /* by this ptxas: new versions drop old processors */
static int failures;

/* --- the tools ---------------------------------------------------------------------------------------------------- */

static bool run(const char *format, ...) KN_PRINTF(1, 2);
static bool run(const char *format, ...)
{
    char command[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

static const char *find(const char *variable, const char *const *candidates)
{
    const char *told = getenv(variable);
    if (told && *told)
        return told;
    for (; *candidates; candidates++)
        if (**candidates == '/' ? access(*candidates, R_OK) == 0
                                : run("command -v %s >%s/found 2>&1", *candidates, folder))
            return *candidates;
    return NULL;
}

static bool compile(const char *name, const char *options, int capability)
{
    return run("%s -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -target nvptx64--nvidiacl -march=sm_%d "
               "-Xclang -target-feature -Xclang +ptx70 -O3 -S -Xclang -mlink-builtin-bitcode -Xclang %s "
               "-Wno-unused-command-line-argument %s -o %s/%s.ptx %s/%s.cl",
               clang, capability, library, options, folder, name, folder, name);
}

static bool write_file(const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

static const char *find_tools(void)
{
    static const char *const clangs[] = {"clang-14", "clang",    "clang-15", "clang-16",
                                         "clang-17", "clang-18", "clang-19", NULL},
                             *const libraries[] = {"/usr/lib/clc/nvptx64--nvidiacl.bc",
                                                   "/usr/share/clc/nvptx64--nvidiacl.bc", NULL},
                             *const assemblers[] = {"ptxas", "/usr/local/cuda/bin/ptxas", NULL};
    clang = find("KOINE_CLANG", clangs);
    library = find("KOINE_LIBCLC", libraries);
    ptxas = find("KOINE_PTXAS", assemblers);
    if (!clang || !library || !ptxas)
        return !ptxas ? "there is no ptxas" : !clang ? "there is no clang" : "there is no libclc for nvptx64--nvidiacl";
    if (!write_file("probe.cl",
                    "kernel void probe(global float *x) { x[get_global_id(0)] = fma(x[0], x[1], x[2]); }\n") ||
        !compile("probe", "2>/dev/null", 70))
        return "this clang makes no PTX of OpenCL C";
    return NULL;
}

/* --- the kernels -------------------------------------------------------------------------------------------------- */

/* "Used 159 registers" and the spills, from the output of ptxas -v: the most of any kernel. */
static void print_use(const char *what, int capability)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "%s/said", folder);
    FILE *file = fopen(path, "r");
    int registers = 0, spills = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *used = strstr(line, "Used "), *stack = strstr(line, "bytes stack frame, ");
        int of_kernel = 0, stores = 0, loads = 0;
        if (used)
            sscanf(used, "Used %d registers", &of_kernel);
        if (stack)
            sscanf(stack, "bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stores, &loads);
        registers = of_kernel > registers ? of_kernel : registers;
        spills = stores + loads > spills ? stores + loads : spills;
    }
    if (file)
        fclose(file);
    printf("sm_%d, %3d registers, %d bytes of spills: %s\n", capability, registers, spills, what);
}

static void assemble(const char *name, const char *what, int capability)
{
    if (run("%s -v -arch=sm_%d -o %s/%s.cubin %s/%s.ptx >%s/said 2>&1", ptxas, capability, folder, name, folder, name,
            folder)) {
        print_use(what, capability);
        return;
    }
    printf("FAIL sm_%d: %s\n", capability, what);
    run("cat %s/said", folder);
    failures++;
}

/* Assembles for the oldest processor known to ptxas from capability `least` on; with KOINE_TEST_FULL=1 also for the
 * newest, and with `all` for those between. */
static void check(const char *source, const char *options, int least, bool all)
{
    char what[KN_BLOCK_OPTIONS + 64], with_keyword[KN_BLOCK_OPTIONS + 64], *text;
    snprintf(what, sizeof what, "%s %s", source, options);
    snprintf(with_keyword, sizeof with_keyword, "-DKN_ASM=__asm__ %s", options);
    if (kn_kernel_source_text(&text, source) != KN_OK) {
        printf("FAIL %s: %s\n", source, kn_error_message());
        failures++;
        return;
    }
    const bool compiled = write_file("kernel.cl", text) && compile("kernel", with_keyword, least);
    kn_free(text);
    if (!compiled) {
        printf("FAIL %s\n", what);
        failures++;
    }
    int first = 0;
    while (first < CAPABILITIES - 1 && (!known[first] || capabilities[first] < least))
        first++;
    for (int i = first; compiled && i < CAPABILITIES; i++)
        if (known[i] && (i == first || (test_full() && (all || i == CAPABILITIES - 1))))
            assemble("kernel", what, capabilities[i]);
}

/* By default one layout, and of the shapes in f64 and TF32 the first. */
static void check_arithmetic(kn_block_arithmetic arithmetic)
{
    const bool tensor = kn_block_by_tensor_cores(arithmetic);
    const int least = tensor ? 80 : 70;
    const kn_block_shape *s;
    char options[KN_BLOCK_OPTIONS];
    const kn_block_shape *first = NULL;
    for (int i = 0; (s = kn_block_shape_at(i)); i++) {
        if (s->tensor_cores != tensor || !(s->efficiency > 0) || (first && arithmetic != KN_BLOCK_F32 && !test_full()))
            continue;
        for (int layout = 0; layout < (first || !test_full() ? 1 : 4); layout++)
            check("gemm/blocked.cl", kn_block_options(options, s, arithmetic, !(layout & 1), layout & 2, ""), least,
                  !first && layout == 0);
        first = first ? first : s;
    }
    for (int weights = 0; weights < 2; weights++)
        check("conv/gpu/blocked.cl",
              kn_block_options(options, first, arithmetic, true, weights, weights ? " -DPASS=1" : " -DPASS=0"), least,
              false);
}

/* The f16 kernel, for processors without and with asynchronous copies: by default every other shape. */
static void check_halves(void)
{
    const kn_block_shape *s;
    char options[KN_BLOCK_OPTIONS];
    for (int least = 75; least <= 80; least += 5) {
        const kn_limits limits = {.ptx_capability = least, .local_memory = 48 << 10, .max_work_group_size = 1024};
        int layout = 0;
        for (int i = 0; (s = kn_block_shape_at(i)); i++)
            if (kn_block_fits(s, &limits, KN_BLOCK_F16) && (i % 2 == 0 || test_full())) {
                check("gemm/halves.cl", kn_gemm_halves_options(options, &limits, s, !(layout & 1), layout & 2), least,
                      layout == 0);
                layout++;
            }
    }
}

/* The vectors of rows of 56, 14 and 7 pixels, padded by one, and those of a 5 x 5 kernel. */
static void check_winograd(void)
{
    static const char *const options[] = {
        "-DT=float -DWR=3 -DXN=4 -DXPHASE=3 -DYN=4", "-DT=float -DWR=3 -DXN=2 -DXPHASE=1 -DYN=2",
        "-DT=float -DWR=3 -DXN=1 -DXPHASE=0 -DYN=1", "-DT=float -DWR=5 -DXN=2 -DXPHASE=0 -DYN=2",
        "-DT=double -DKN_USE_F64 -DWR=3 -DXN=4 -DXPHASE=3 -DYN=4"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        check("conv/gpu/winograd.cl", options[i], 70, false);
}

/* Heads of 64 elements, and the widest, which need the most registers. (clang has no vload_half for this target.) */
static void check_attention(void)
{
    static const char *const options[] = {"-DT=float -DS=float -DBLOCK=64 -DPARTS=4",
                                          "-DT=float -DS=float -DBLOCK=64 -DPARTS=16",
                                          "-DT=float -DS=ushort -DKN_BFLOAT -DBLOCK=64 -DPARTS=4",
                                          "-DT=double -DKN_USE_F64 -DS=double -DBLOCK=32 -DPARTS=16"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        check("attention/forward_gpu.cl", options[i], 70, false);
        check("attention/backward_gpu.cl", options[i], 70, false);
    }
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    const char *missing = find_tools();
    if (missing)
        printf("skipped: %s\n", missing);
    for (int i = 0; !missing && i < CAPABILITIES; i++) {
        known[i] = run("%s --help | grep -q \"'sm_%d'\"", ptxas, capabilities[i]);
        if (!known[i])
            printf("this ptxas does not know sm_%d\n", capabilities[i]);
    }
    for (int arithmetic = KN_BLOCK_F32; !missing && arithmetic <= KN_BLOCK_TF32; arithmetic++)
        check_arithmetic((kn_block_arithmetic)arithmetic);
    if (!missing) {
        check_halves();
        check_winograd();
        check_attention();
    }
    run("rm -r %s", folder);
    return missing ? 77 : failures > 0;
}
