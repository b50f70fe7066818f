/* cli/operators.c - `koine operators`: prints the list of operators, as a table for the terminal or in Markdown. */
#include <unistd.h>

#include "base/layout.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "ops/dispatch/params_text.h"

/* --- one operator in words ---------------------------------------------------------------------------------------- */

static void append_inputs(kn_text *out, const kn_op *op)
{
    const int count = kn_op_describe(op).num_inputs;
    for (int i = 0; i < count; i++) {
        const kn_op_input input = kn_op_input_at(op, i);
        kn_text_format(out, "%s%s%s", i > 0 ? ", " : "", input.name,
                       input.is_optional ? "?"
                       : input.is_list   ? "..."
                                         : "");
    }
}

static void append_params(kn_text *out, const kn_op *op)
{
    const kn_op_info info = kn_op_describe(op);
    char *defaults = info.num_params > 0 ? kn_malloc(info.params_size) : NULL;
    out->failed |= !defaults && info.num_params > 0;
    if (!defaults)
        return;
    kn_op_params_init(op, defaults);
    for (int i = 0; i < info.num_params; i++) {
        const kn_op_param *param = kn_op_param_at(op, i);
        kn_text_format(out, "%s%s=", i > 0 ? ", " : "", param->name);
        kn_param_append(out, param, defaults + param->offset, false);
    }
    kn_free(defaults);
}

static void append_outputs(kn_text *out, const kn_op *op)
{
    const int count = kn_op_describe(op).num_outputs;
    for (int i = 0; i < count; i++)
        kn_text_format(out, "%s%s", i > 0 ? ", " : "", kn_op_output_at(op, i));
}

static bool takes(const kn_op *op, kn_dtype dtype) { return kn_op_input_at(op, 0).dtypes >> dtype & 1; }

/* The dtypes of the first input. */
static const char *dtypes_of(const kn_op *op)
{
    return takes(op, KN_BOOL) ? "all" : takes(op, KN_I64) ? "numbers" : takes(op, KN_F16) ? "floating" : "f32, f64";
}

static const char *gradients_of(const kn_op_info *info)
{
    return info->is_twice_differentiable ? "second" : info->is_differentiable ? "first" : "none";
}

static const char *kind_of(const kn_op_info *info) { return info->in_place ? "in place" : info->is_view ? "view" : ""; }

/* --- the table and the page --------------------------------------------------------------------------------------- */

typedef void (*append_part)(kn_text *out, const kn_op *op);

static void put(kn_table *table, append_part part, const kn_op *op)
{
    kn_text text = {0};
    part(&text, op);
    char *cell = kn_text_finish(&text);
    table->failed |= !cell && text.failed;
    kn_table_put(table, "%s", cell ? cell : "");
    kn_free(cell);
}

static int print_table(void)
{
    static const kn_table_column columns[] = {{"operator", .rank = 0},
                                              {"inputs", .shortest = 12, .rank = 1},
                                              {"parameters and defaults", .shortest = 16, .rank = 2},
                                              {"outputs", .rank = 4},
                                              {"dtypes", .rank = 3},
                                              {"gradient", .rank = 3},
                                              {"", .rank = 4}};
    kn_table table = {.columns = columns, .num_columns = sizeof columns / sizeof columns[0]};
    kn_text out = {0};
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        const kn_op_info info = kn_op_describe(op);
        kn_table_put(&table, "%s", info.name);
        put(&table, append_inputs, op);
        put(&table, append_params, op);
        put(&table, append_outputs, op);
        kn_table_put(&table, "%s", dtypes_of(op));
        kn_table_put(&table, "%s", gradients_of(&info));
        kn_table_put(&table, "%s", kind_of(&info));
    }
    kn_table_append(&out, &table, kn_page_of(STDOUT_FILENO));
    kn_table_free(&table);
    return kn_print_text(&out);
}

static void append_code(kn_text *out, append_part part, const kn_op *op)
{
    kn_text text = {0};
    part(&text, op);
    char *cell = kn_text_finish(&text);
    kn_text_format(out, cell && cell[0] ? " `%s` |" : " |", cell ? cell : "");
    out->failed |= !cell && text.failed;
    kn_free(cell);
}

static int print_markdown(void)
{
    kn_text out = {0};
    kn_text_append(&out, "| operator | inputs | parameters | outputs | dtypes | gradient | |\n"
                         "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op *op = kn_op_at(i);
        const kn_op_info info = kn_op_describe(op);
        kn_text_format(&out, "| `%s` |", info.name);
        append_code(&out, append_inputs, op);
        append_code(&out, append_params, op);
        append_code(&out, append_outputs, op);
        kn_text_format(&out, " %s | %s | %s |\n", dtypes_of(op), gradients_of(&info), kind_of(&info));
    }
    return kn_print_text(&out);
}

static int run(int argc, char **argv)
{
    bool markdown = false;
    const kn_option options[] = {{"--markdown", &markdown, NULL}};
    const int status = kn_parse_options(&kn_command_operators, argc, argv, options, 1, NULL, 0);
    if (status >= 0)
        return status;
    return markdown ? print_markdown() : print_table();
}

const kn_command kn_command_operators = {
    .name = "operators",
    .summary = "list the operators, their inputs, parameters and defaults",
    .usage = "usage: koine operators [--markdown]\n\n"
             "Lists the operators of <koine/operators.h>. Inputs with ? are optional, those with ... lists.\n"
             "  --markdown   print a Markdown table; tools/operators.py makes docs/operators.md from it\n",
    .run = run,
};
