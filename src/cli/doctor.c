/* cli/doctor.c - `koine doctor`: diagnoses the OpenCL installation and says how to fix it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/layout.h"
#include "cli/cli.h"
#include "cli/self_test.h"
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

/* Prints the findings from `first` on. Done after each step rather than at the end, since a driver may crash the
 * process. */
static void print_findings(kn_diagnosis *diagnosis, int first, bool quiet)
{
    kn_page page = kn_page_of(STDOUT_FILENO);
    kn_text out = {0};
    for (int i = first; i < diagnosis->count; i++)
        if (!quiet || diagnosis->findings[i].kind != KN_FINDING_GOOD)
            append_finding(&out, &diagnosis->findings[i], page);
    diagnosis->failed |= out.failed;
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

static void test_device(kn_diagnosis *diagnosis, kn_device *device, bool quiet)
{
    int before = diagnosis->count;
    kn_self_test(diagnosis, device);
    print_findings(diagnosis, before, quiet);
}

/* One device by name, or all of them. */
static kn_status test_devices(kn_diagnosis *diagnosis, const char *wanted, bool quiet)
{
    for (int i = 0; !wanted && i < kn_device_count(); i++)
        test_device(diagnosis, kn_device_at(i), quiet);
    if (!wanted)
        return KN_OK;
    kn_device *device = kn_device_open(wanted);
    if (!device)
        return kn_error_status();
    if (kn_device_get_type(device) == KN_DEVICE_HOST)
        return kn_error_set(KN_ERR_ARGUMENT,
                            "operations do not run on the host: nothing to test; choose an OpenCL device");
    test_device(diagnosis, device, quiet);
    return KN_OK;
}

/* In order from causes to consequences. */
static void examine_system(kn_diagnosis *diagnosis, bool quiet)
{
    static void (*const steps[])(kn_diagnosis *) = {
        kn_diagnose_environment, kn_diagnose_cache, kn_diagnose_nodes, kn_diagnose_drivers, kn_diagnose_devices,
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int before = diagnosis->count;
        steps[i](diagnosis);
        print_findings(diagnosis, before, quiet);
    }
}

static int run(int argc, char **argv)
{
    bool system_only = false, quiet = false;
    const char *wanted = NULL;
    const kn_option options[] = {
        {.name = "--system", .flag = &system_only},
        {.name = "--quiet", .flag = &quiet},
        {.name = "--device", .value = &wanted},
    };
    int status = kn_parse_options(&kn_command_doctor, argc, argv, options, 3, NULL);
    if (status >= 0)
        return status;

    kn_diagnosis diagnosis = {0};
    examine_system(&diagnosis, quiet);
    kn_status tested = system_only ? KN_OK : test_devices(&diagnosis, wanted, quiet);
    if (!quiet && tested == KN_OK)
        print_verdict(&diagnosis);
    status = kn_diagnosis_problems(&diagnosis) > 0 ? KN_EXIT_FAILED : KN_EXIT_DONE;
    if (tested != KN_OK)
        status = kn_report_error();
    if (diagnosis.failed) {
        fprintf(stderr, "koine: out of host memory: the list above is incomplete\n");
        status = KN_EXIT_FAILED;
    }
    kn_diagnosis_free(&diagnosis);
    return status;
}

const kn_command kn_command_doctor = {
    .name = "doctor",
    .summary = "diagnose the OpenCL installation and say how to fix it",
    .usage = "usage: koine doctor [--system] [--device DEVICE] [--quiet]\n\n"
             "Examines the OpenCL drivers, the device nodes and the devices, and checks each device's results against "
             "references.\n\n"
             "  --system          only examine the system; compute nothing\n"
             "  --device DEVICE   test only this device\n"
             "  --quiet           print only problems and notes\n\n"
             "Exit status: 0 all is well, 1 something is wrong, 2 wrong usage.\n",
    .run = run,
};
