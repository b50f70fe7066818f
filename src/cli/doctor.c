/* cli/doctor.c - `koine doctor`: diagnoses the OpenCL installation and says how to fix it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/layout.h"
#include "cli/cli.h"
#include "cli/self_test.h"
#include "dist/group/diagnose.h"
#include "watch/doctor/diagnose.h"

enum { INDENT = 9 }; /* of a finding's text, after its mark */

static void append_finding(kn_text *out, const kn_finding *finding, kn_page page)
{
    static const struct {
        const char *text;
        kn_colour colour;
    } marks[] = {{"ok", KN_COLOUR_GOOD}, {"note", KN_COLOUR_WARNING}, {"problem", KN_COLOUR_BAD}};
    const char *mark = marks[finding->kind].text, *remedy = "remedy: ";
    kn_text_format(out, "%s%s%s%*s", kn_colour_on(page, marks[finding->kind].colour), mark, kn_colour_off(page),
                   INDENT - (int)strlen(mark), "");
    kn_append_wrapped(out, finding->what, INDENT, INDENT, page.width);
    kn_text_append(out, "\n");
    if (!finding->remedy)
        return;
    kn_text_format(out, "%*s%s", INDENT, "", remedy);
    kn_append_wrapped(out, finding->remedy, INDENT + (int)strlen(remedy), INDENT, page.width);
    kn_text_append(out, "\n");
}

typedef struct report {
    kn_diagnosis diagnosis;
    int printed; /* findings */
    bool quiet, every_operator;
} report;

/* Prints the new findings. Done after each step rather than at the end, since a driver may crash the process. */
static void print_findings(report *r)
{
    kn_page page = kn_page_of(STDOUT_FILENO);
    kn_text out = {0};
    for (; r->printed < r->diagnosis.count; r->printed++)
        if (!r->quiet || r->diagnosis.findings[r->printed].kind != KN_FINDING_GOOD)
            append_finding(&out, &r->diagnosis.findings[r->printed], page);
    r->diagnosis.failed |= out.failed;
    kn_print_text(&out);
}

static void print_verdict(const kn_diagnosis *diagnosis)
{
    int problems = kn_diagnosis_problems(diagnosis);
    if (problems == 0)
        printf("All is well.\n");
    else
        printf("%d problem%s found.\n", problems, problems == 1 ? "" : "s");
}

/* One device by name, or all of them. */
static kn_status test_devices(report *r, const char *wanted)
{
    for (int i = 0; !wanted && i < kn_device_count(); i++) {
        kn_self_test(&r->diagnosis, kn_device_at(i), r->every_operator);
        print_findings(r);
    }
    if (!wanted)
        return KN_OK;
    kn_device *device = kn_device_open(wanted);
    if (!device)
        return kn_error_status();
    if (kn_device_get_type(device) == KN_DEVICE_HOST)
        return kn_error_set(KN_ERR_ARGUMENT,
                            "operations do not run on the host: nothing to test; choose an OpenCL device");
    kn_self_test(&r->diagnosis, device, r->every_operator);
    print_findings(r);
    return KN_OK;
}

/* In order from causes to consequences. */
static void examine_system(report *r)
{
    static void (*const steps[])(kn_diagnosis *) = {
        kn_diagnose_environment, kn_diagnose_cache,   kn_diagnose_nodes,
        kn_diagnose_drivers,     kn_diagnose_devices, kn_diagnose_groups,
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        steps[i](&r->diagnosis);
        print_findings(r);
    }
}

static int run(int argc, char **argv)
{
    report r = {0};
    bool system_only = false;
    const char *wanted = NULL;
    const kn_option options[] = {
        {.name = "--system", .flag = &system_only},
        {.name = "--quiet", .flag = &r.quiet},
        {.name = "--operators", .flag = &r.every_operator},
        {.name = "--device", .value = &wanted},
    };
    int status = kn_parse_options(&kn_command_doctor, argc, argv, options, 4, NULL, 0);
    if (status >= 0)
        return status;

    examine_system(&r);
    kn_status tested = system_only ? KN_OK : test_devices(&r, wanted);
    if (!r.quiet && tested == KN_OK)
        print_verdict(&r.diagnosis);
    status = kn_diagnosis_problems(&r.diagnosis) > 0 ? KN_EXIT_FAILED : KN_EXIT_DONE;
    if (tested != KN_OK)
        status = kn_report_error();
    if (r.diagnosis.failed) {
        fprintf(stderr, "koine: out of host memory: the list above is incomplete\n");
        status = KN_EXIT_FAILED;
    }
    kn_diagnosis_free(&r.diagnosis);
    return status;
}

const kn_command kn_command_doctor = {
    .name = "doctor",
    .summary = "diagnose the OpenCL installation and say how to fix it",
    .usage = "usage: koine doctor [--system] [--device DEVICE] [--operators] [--quiet]\n\n"
             "Examines the OpenCL drivers, the device nodes and the devices, and checks each device's results against "
             "references.\n\n"
             "  --system          only examine the system; compute nothing\n"
             "  --device DEVICE   test only this device\n"
             "  --operators       check every operator, not a few of each kind: minutes, if no kernels are cached\n"
             "  --quiet           print only problems and notes\n\n"
             "Exit status: 0 all is well, 1 something is wrong, 2 wrong usage.\n",
    .run = run,
};
