/* smallest.c - runs the kernels of each operator once, forward and backward, on the sample with which `koine doctor`
 * tries it, also with each implementation of its tables forced; for Oclgrind (kernels.sh), which interprets kernels:
 *
 *     smallest [--as-gpu | --as-neon] [--part I/N] [OPERATOR...]
 *
 * Names each operator before it runs, so that the last name is the one that ended the process. Results are not compared
 * with anything: other tests do. */
#include <koine/koine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/op_samples.h"
#include "ops/dispatch/choice.h"
#include "ops/dispatch/operators.h"
#include "support/as_gpu.h"

enum { MOST_OUTPUTS = 8 };

static int failures;

/* Inputs that may be left out need no gradient: with one attention composes its result of other operators. */
static void detach_optional(const kn_op *op, kn_op_sample *sample)
{
    for (int i = 0; i < sample->num_inputs; i++)
        if (sample->inputs[i] && kn_op_input_at(op, i).is_optional)
            sample->inputs[i] = kn_detach(sample->inputs[i]);
}

static bool run_once(const kn_op *op, bool all_gradients)
{
    KN_SCOPE;
    kn_op_sample sample;
    kn_tensor *outputs[MOST_OUTPUTS] = {NULL};
    const kn_op_info info = kn_op_describe(op);
    kn_manual_seed(1);
    bool fine = kn_op_sample_make(&sample, op, KN_F32, info.is_differentiable) == KN_OK;
    if (fine && !all_gradients)
        detach_optional(op, &sample);
    if (fine && info.in_place && sample.inputs[0])
        sample.inputs[0] = kn_clone(sample.inputs[0]); /* a leaf is not changed */
    fine = fine && kn_op_call(op, sample.inputs, sample.num_inputs, sample.params, outputs, info.num_outputs) == KN_OK;
    if (fine && kn_requires_grad(outputs[0]))
        fine = kn_backward_with(outputs[0], kn_full_like(outputs[0], 1), false) == KN_OK;
    fine = kn_synchronize(kn_device_current()) == KN_OK && fine;
    kn_op_sample_free(&sample);
    return fine;
}

static void run(const kn_op *op, const char *how)
{
    const bool all = run_once(op, true), optional = kn_op_describe(op).num_inputs > 1 &&
                                                    kn_op_input_at(op, kn_op_describe(op).num_inputs - 1).is_optional;
    if (all && (!optional || run_once(op, false)))
        return;
    printf("FAIL %s%s: %s\n", op->name, how, kn_error_message());
    kn_error_clear();
    failures++;
}

/* CLBlast breaks the heap under Oclgrind 21.10, and its kernels are not ours. */
static bool is_ours(const kn_implementation *row) { return strcmp(row->name, "clblast") != 0; }

static void run_forced(const kn_op *op, const kn_implementation_table *table)
{
    for (int i = 0; i < table->count; i++) {
        char how[96];
        snprintf(how, sizeof how, " with %s:%s", table->operation, table->rows[i].name);
        if (!is_ours(&table->rows[i]) || !can_force(table, &table->rows[i]))
            continue;
        kn_force_implementation(table->operation, table->rows[i].name);
        run(op, how);
        if (kn_count_forced(table->operation).ran > 0)
            printf("    %s\n", how + 1);
    }
    kn_force_implementation(table->operation, "reference");
}

/* First with the references of all tables, which tells which of them it uses. */
static void run_operator(const kn_op *op)
{
    const kn_implementation_table *used[16];
    int count = 0;
    printf("%s\n", op->name);
    fflush(stdout);
    for (int i = 0; kn_implementation_tables[i]; i++)
        kn_force_implementation(kn_implementation_tables[i]->operation, "reference");
    run(op, "");
    for (int i = 0; kn_implementation_tables[i]; i++)
        if (kn_count_forced(kn_implementation_tables[i]->operation).ran > 0)
            used[count++] = kn_implementation_tables[i];
    for (int i = 0; i < count; i++)
        run_forced(op, used[i]);
}

static bool is_operator(const char *name)
{
    for (int i = 0; i < kn_op_count(); i++)
        if (strcmp(kn_op_at(i)->name, name) == 0)
            return true;
    return false;
}

static bool is_named(const kn_op *op, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(op->name, names[i]) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    int part = 1, parts = 1, at = 1, ran = 0;
    obey_as_gpu(argc, argv);
    obey_vector_width(argc, argv);
    while (at < argc && strncmp(argv[at], "--", 2) == 0)
        if (strcmp(argv[at++], "--part") == 0 && (at == argc || sscanf(argv[at++], "%d/%d", &part, &parts) != 2))
            return 2;
    for (int i = at; i < argc; i++)
        if (!is_operator(argv[i]))
            return fprintf(stderr, "no operator is called \"%s\"\n", argv[i]), 2;
    for (int i = 0; i < kn_op_count(); i++)
        if (i * parts / kn_op_count() == part - 1 && is_named(kn_op_at(i), argc - at, argv + at)) {
            run_operator(kn_op_at(i));
            ran++;
        }
    printf("%d operators ran, %d runs failed\n", ran, failures);
    fflush(stdout);
    _Exit(failures > 0); /* Oclgrind 21.10 breaks the heap when a function called at exit waits for its queue */
}
